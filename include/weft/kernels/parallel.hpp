#ifndef WEFT_KERNELS_PARALLEL_HPP
#define WEFT_KERNELS_PARALLEL_HPP
// One kernel's work on several threads of its task's pool.

#include <weft/core/config.hpp>
#include <weft/runtime/thread_pool.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Calls `work(i)` once for each i below `count`, on the calling thread and on threads of the pool that are free, and returns when all are
/// done. Throws what a call threw. A pool whose threads are all busy delays nothing: the caller does what nobody has begun.
inline void parallel_for(thread_pool& pool, std::size_t count, const std::function<void(std::size_t)>& work) {
  struct shared_state {
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t next = 0, done = 0;
    std::exception_ptr failure;
  };
  const auto state = std::make_shared<shared_state>();
  // A thread that comes late finds nothing left to begin, and does not touch `work`, which may be gone.
  const auto take_part = [state, count, &work] {
    std::unique_lock<std::mutex> lock(state->mutex);
    while (state->next < count) {
      const std::size_t i = state->next++;
      lock.unlock();
      std::exception_ptr failure;
      try {
        work(i);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure != nullptr) state->failure = failure;
      if (++state->done == count) state->finished.notify_all();
    }
  };
  try {
    for (std::size_t i = 1; i < count; ++i) pool.schedule(take_part);
  } catch (...) {
    // Whoever was not called is not needed.
  }
  take_part();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->finished.wait(lock, [&] { return state->done == count; });
  if (state->failure != nullptr) std::rethrow_exception(state->failure);
}

}  // namespace weft::detail
#endif

#endif
