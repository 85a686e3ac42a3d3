#ifndef WEFT_TESTS_LONG_TESTS_HPP
#define WEFT_TESTS_LONG_TESTS_HPP

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#if defined(__has_feature)
#define WEFT_TESTS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_TESTS_SANITIZED 1
#else
#define WEFT_TESTS_SANITIZED 0
#endif

/// Whether a sanitizer watches, so that memory says nothing and everything takes longer.
inline constexpr bool is_sanitized = WEFT_TESTS_SANITIZED;

/// Whether full counts are asked for.
inline bool takes_long() {
  const char* asked = std::getenv("WEFT_TEST_LONG");
  return asked != nullptr && std::string(asked) == "1";
}

/// Whether a test that takes minutes or so many gigabytes is asked for, and the machine has them now; else says that it is skipped.
inline bool may_take(double gigabytes) {
  std::ifstream info("/proc/meminfo");
  std::string name;
  double kilobytes = 0;
  while (info >> name >> kilobytes && name != "MemAvailable:") info.ignore(1000, '\n');
  if (takes_long() && !is_sanitized && kilobytes / (1 << 20) > gigabytes) return true;
  MESSAGE("skipped: runs with WEFT_TEST_LONG=1, without sanitizers, with " << gigabytes << " GiB of memory");
  return false;
}

#endif
