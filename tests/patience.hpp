#ifndef WEFT_TESTS_PATIENCE_HPP
#define WEFT_TESTS_PATIENCE_HPP

#include <chrono>

/// How long a test waits for what has to come, before it calls it a wait without end.
inline constexpr std::chrono::seconds patience{60};

#endif
