#ifndef WEFT_TESTS_ERROR_OF_HPP
#define WEFT_TESTS_ERROR_OF_HPP

#include <weft/core/status.hpp>

/// The error that a call throws; a status that is ok when it throws none.
template <class F> weft::status error_of(F&& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.status();
  }
  return weft::status();
}

#endif
