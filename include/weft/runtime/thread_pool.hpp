#ifndef WEFT_RUNTIME_THREAD_POOL_HPP
#define WEFT_RUNTIME_THREAD_POOL_HPP
// The threads on which a task's expensive kernels run. A kernel that waits for something gives its place to another thread.

#include <weft/core/config.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft {

/// Threads that run closures in the order they were added, a fixed number at once. The destructor runs what is queued and joins.
class thread_pool {
 public:
  explicit thread_pool(std::size_t threads = std::thread::hardware_concurrency()) : size_(threads == 0 ? 1 : threads) {
    for (std::size_t i = 0; i < size_; ++i) start_thread();
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool();

  /// Runs `work` on one of the threads, soon. Thread-safe.
  void schedule(std::function<void()> work);
  std::size_t size() const noexcept { return size_; }

  /// While one lives on a thread of the pool, another thread takes that thread's place: for kernels that wait.
  class blocking {
   public:
    explicit blocking(thread_pool* pool) : pool_(pool != nullptr && pool->on_pool_thread() ? pool : nullptr) {
      if (pool_ != nullptr) pool_->enter_blocking();
    }
    blocking(const blocking&) = delete;
    blocking& operator=(const blocking&) = delete;
    ~blocking() {
      if (pool_ != nullptr) pool_->leave_blocking();
    }

   private:
    thread_pool* pool_;
  };
  /// Whether the calling thread belongs to this pool.
  bool on_pool_thread() const noexcept { return current() == this; }
  /// The pool that the calling thread belongs to, or nullptr.
  static thread_pool* of_this_thread() noexcept { return current(); }

 private:
  static thread_pool*& current() noexcept {
    thread_local thread_pool* pool = nullptr;
    return pool;
  }
  void start_thread() { threads_.emplace_back([this] { work(); }); }
  void work();
  void enter_blocking();
  void leave_blocking();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  std::size_t size_;
  // Closures that run, and closures that wait while they run; there are at least `size_` threads beside the latter.
  std::size_t running_ = 0, blocked_ = 0;
  bool stopping_ = false;
};

#if WEFT_HAS_BODIES

WEFT_DECL thread_pool::~thread_pool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (std::size_t i = 0;; ++i) {
    std::thread next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (i == threads_.size()) break;
      next = std::move(threads_[i]);
    }
    next.join();
  }
}

WEFT_DECL void thread_pool::schedule(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  ready_.notify_one();
}

WEFT_DECL void thread_pool::work() {
  current() = this;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ready_.wait(lock, [this] { return queue_.empty() ? stopping_ : running_ < size_; });
    if (queue_.empty()) return;
    std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
    --running_;
    if (stopping_) ready_.notify_all();
  }
}

WEFT_DECL void thread_pool::enter_blocking() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (threads_.size() < size_ + blocked_ + 1) start_thread();
  ++blocked_;
  --running_;
  ready_.notify_one();
}

// The place is taken back at once: for a moment there may be one closure too many.
WEFT_DECL void thread_pool::leave_blocking() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --blocked_;
  ++running_;
}

#endif

}  // namespace weft

#endif
