#ifndef WEFT_BENCHMARKS_MEASURE_HPP
#define WEFT_BENCHMARKS_MEASURE_HPP
// Work of weft's beside the same of a peer in the same run, one thread each: prints JSON lines {"work", "unit", "weft", "peer", "ratio"}, where
// ratio says how weft compares (above 1: faster than the peer). Without oneDNN's headers PEER(...) is no work, and its figure 0.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#if __has_include(<oneapi/dnnl/dnnl.hpp>)
#include <oneapi/dnnl/dnnl.hpp>
#define WITH_ONEDNN 1
#else
#define WITH_ONEDNN 0
#endif
#if defined(__unix__)
#include <time.h>
#include <unistd.h>
#endif

using work_function = std::function<void()>;

// Time of this thread, so that other work on the machine does not count.
inline double seconds_now() {
#if defined(__unix__)
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
#else
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
#endif
}

inline double seconds_per_call(const work_function& work, int calls) {
  const double begin = seconds_now();
  for (int i = 0; i < calls; ++i) work();
  return (seconds_now() - begin) / calls;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct pair_of_times {
  double own, peer;
};

// Medians of alternating repetitions of about 4 ms each.
inline pair_of_times measure(const work_function& own, const work_function& peer) {
  const auto calls_of = [](const work_function& work) {
    work();
    const double once = std::max(seconds_per_call(work, 1), 1e-7);
    return std::max(1, static_cast<int>(4e-3 / once));
  };
  const int own_calls = calls_of(own), peer_calls = peer ? calls_of(peer) : 0;
  std::vector<double> own_times, peer_times;
  for (int repetition = 0; repetition < 41; ++repetition) {
    own_times.push_back(seconds_per_call(own, own_calls));
    if (peer) peer_times.push_back(seconds_per_call(peer, peer_calls));
  }
  return {median(own_times), peer ? median(peer_times) : 0};
}

// `amount` per call turns times into a rate; 0 prints microseconds.
inline void report(const std::string& work, const char* unit, double amount, const work_function& own, const work_function& peer) {
  const pair_of_times times = measure(own, peer);
  const auto figure = [amount](double seconds) { return seconds == 0 ? 0 : amount == 0 ? seconds * 1e6 : amount / seconds; };
  std::printf("{\"work\": \"%s\", \"unit\": \"%s\", \"weft\": %.4g, \"peer\": %.4g, \"ratio\": %.3f}\n", work.c_str(), unit,
              figure(times.own), figure(times.peer), times.peer / times.own);
  std::fflush(stdout);
}

#if WITH_ONEDNN
inline dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
inline dnnl::stream& stream() {
  static dnnl::stream queue(engine());
  return queue;
}
inline dnnl::memory::desc matrix_desc(std::size_t rows, std::size_t columns) {
  return {{static_cast<dnnl::memory::dim>(rows), static_cast<dnnl::memory::dim>(columns)},
          dnnl::memory::data_type::f32,
          dnnl::memory::format_tag::ab};
}
#define PEER(...) __VA_ARGS__
#else
#define PEER(...) work_function()
#endif

// The peer's thread pool reads its size when the program is loaded.
inline void use_one_thread([[maybe_unused]] char** argv) {
#if defined(__unix__)
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
#endif
}

#endif
