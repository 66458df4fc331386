// Checks for the tests of the core. A failed check prints its condition and line, and ends the test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

// Returns whether call() throws an Error.
template <class Error, class Call>
bool throws(const Call& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// A progress function that stops the work by an exception.
inline void stop(std::int64_t, std::int64_t) { throw std::runtime_error("stop"); }
