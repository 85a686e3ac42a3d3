#ifndef WEFT_TESTS_CLUSTER_PROCESS_COUNTS_HPP
#define WEFT_TESTS_CLUSTER_PROCESS_COUNTS_HPP
// What this process holds, and whether it comes back. A joined thread and a closed peer leave their entry a moment later, and what a test before has left may
// still be going: so "back to where it was" is awaited, and is a bound from above.

#include "../patience.hpp"

#include <dirent.h>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace process_counts {

inline int entries_of(const char* folder) {
  int n = 0;
  DIR* all = ::opendir(folder);
  while (::readdir(all) != nullptr) ++n;
  ::closedir(all);
  return n;
}
inline int open_files() { return entries_of("/proc/self/fd"); }
inline int threads() { return entries_of("/proc/self/task"); }

/// Waits, within bounds, for something that other threads bring about.
template <class F> bool soon(F condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition())
    if (std::chrono::steady_clock::now() > end) return false;
    else std::this_thread::yield();
  return true;
}

/// The descriptors and threads of this process when it was made.
class held {
 public:
  bool is_back() const { return open_files() <= files_ && threads() <= threads_; }
  void check_threads_back() const { CHECK(soon([&] { return threads() <= threads_; })); }
  void check_back() const {
    check_threads_back();
    CHECK(soon([&] { return open_files() <= files_; }));
  }

 private:
  int files_ = open_files(), threads_ = threads();
};

}  // namespace process_counts

#endif
