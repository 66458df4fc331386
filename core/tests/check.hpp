// Checks for the core's tests and fuzz targets.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#define CHECK(condition)                                                                                   \
  do {                                                                                                     \
    if (!(condition)) throw std::logic_error(__FILE__ ":" + std::to_string(__LINE__) + ": " + #condition); \
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
