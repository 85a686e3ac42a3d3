#ifndef WEFT_BENCHMARKS_BARRIER_HPP
#define WEFT_BENCHMARKS_BARRIER_HPP

#include <condition_variable>
#include <mutex>

// Where threads wait for one another.
class barrier {
 public:
  explicit barrier(int threads) : threads_(threads), missing_(threads) {}
  void arrive_and_wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    if (--missing_ == 0) {
      missing_ = threads_;
      ++round_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  const int threads_;
  int missing_, round_ = 0;
};

#endif
