// What the fuzz targets share: numbers read from the bytes of a test case, and teams of one and two threads.
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

  // The next bytes as a number; 0 where there are no more.
  template <class T>
  T read() {
    T value{};
    const std::size_t size = std::min(left_, sizeof value);
    std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }

  // An integer in [least, most], from one byte: so small changes of a test case are small changes of its
  // meaning.
  std::int64_t integer(std::int64_t least, std::int64_t most) {
    return least + read<std::uint8_t>() % (most - least + 1);
  }

  // A finite number of any size up to `most`: often a small integer, so that values tie.
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

// Whether to compare with the results of two threads: seldom, for most of the time goes to waking them.
inline bool compare_threads(Input& input) { return input.integer(0, 7) == 0; }

inline agglo::ThreadPool& one_thread() {
  static agglo::ThreadPool pool(1);
  return pool;
}
inline agglo::ThreadPool& two_threads() {
  static agglo::ThreadPool pool(2);
  return pool;
}
