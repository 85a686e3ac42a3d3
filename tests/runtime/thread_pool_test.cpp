#include <weft/runtime/thread_pool.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using weft::thread_pool;

namespace {

// Waits until `count` arrivals, at most ten seconds.
class gate {
 public:
  void arrive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool wait(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("thread_pool: everything queued runs before the end of the pool") {
  std::atomic<int> ran{0};
  {
    thread_pool pool(2);
    CHECK(pool.size() == 2);
    CHECK_FALSE(pool.on_pool_thread());
    for (int i = 0; i < 1000; ++i) pool.schedule([&] { ++ran; });
  }
  CHECK(ran == 1000);
}

TEST_CASE("thread_pool: a closure that blocks gives its place to another") {
  gate opened, done;
  bool in_time = false;
  thread_pool pool(1);
  pool.schedule([&] {
    CHECK(pool.on_pool_thread());
    const thread_pool::blocking elsewhere(&pool);
    in_time = opened.wait(1);
    done.arrive();
  });
  pool.schedule([&] { opened.arrive(); });
  REQUIRE(done.wait(1));
  CHECK(in_time);
}

TEST_CASE("thread_pool: blocking nests over closures, as deep as it must") {
  gate started, finish, done;
  thread_pool pool(1);
  for (int i = 0; i < 5; ++i)
    pool.schedule([&] {
      const thread_pool::blocking elsewhere(&pool);
      started.arrive();
      finish.wait(1);
      done.arrive();
    });
  CHECK(started.wait(5));
  finish.arrive();
  CHECK(done.wait(5));
}

TEST_CASE("thread_pool: after blocking no more closures run at once than it has threads") {
  gate opened, done, all;
  std::atomic<int> running{0}, most{0};
  thread_pool pool(1);
  pool.schedule([&] {
    {
      const thread_pool::blocking elsewhere(&pool);
      opened.wait(1);
    }
    done.arrive();
  });
  pool.schedule([&] {
    opened.arrive();
    done.arrive();
  });
  REQUIRE(done.wait(2));
  for (int i = 0; i < 200; ++i)
    pool.schedule([&] {
      const int now = ++running;
      int seen = most;
      while (seen < now && !most.compare_exchange_weak(seen, now)) {}
      std::this_thread::yield();
      --running;
      all.arrive();
    });
  REQUIRE(all.wait(200));
  CHECK(most == 1);
}

TEST_CASE("thread_pool: blocking elsewhere than on the pool does nothing") {
  gate ran;
  thread_pool pool(1);
  const thread_pool::blocking none(nullptr), outside(&pool);
  pool.schedule([&] { ran.arrive(); });
  CHECK(ran.wait(1));
}
