// Input for the fuzz targets: numbers from the bytes of a test case, and pools of one and two threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../tests/check.hpp"
#include "base/thread_pool.hpp"

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  // Reads the next bytes as a number. Returns 0 if no bytes remain.
  template <class T>
  T read() {
    T value{};
    const std::size_t size = std::min(left_, sizeof value);
    std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }

  // Reads an integer in [least, most] from one byte. So a small change of a test case has a small effect.
  std::int64_t integer(std::int64_t least, std::int64_t most) {
    return least + read<std::uint8_t>() % (most - least + 1);
  }

  // Reads a finite number with a magnitude of at most `most`. Small integers are frequent, so values tie.
  template <class Real>
  Real real(double most) {
    const auto byte = read<std::uint8_t>();
    if (byte < 192) return static_cast<Real>(byte % 16) - 4;
    const auto value = static_cast<double>(byte < 224 ? read<float>() : read<double>());
    return static_cast<Real>(std::isfinite(value) ? std::clamp(value, -most, most) : 0.0);
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

// Returns whether to compare with the results of two threads.
// It is rarely true, because starting threads takes most of the time.
inline bool compare_threads(Input& input) { return input.integer(0, 7) == 0; }

inline agglo::ThreadPool& one_thread() {
  static agglo::ThreadPool pool(1);
  return pool;
}
inline agglo::ThreadPool& two_threads() {
  static agglo::ThreadPool pool(2);
  return pool;
}
