// The innermost loops of the neighbour search, in the widest instructions that the machine at hand has.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Sums in float64, in an order that depends on n alone: the same bits on every machine, and for (y, x).
template <class T>
double dot(const T* x, const T* y, std::int64_t n);
template <class T>
double squared_distance(const T* x, const T* y, std::int64_t n);

// The same in float32, which is faster. No term is rounded more than n / 8 + 12 times. Not for float64.
template <class T>
float quick_dot(const T* x, const T* y, std::int64_t n);
template <class T>
float quick_squared_distance(const T* x, const T* y, std::int64_t n);

// out = (x - center) * factor in float32; in float32 throughout but for float64 points, if the factor allows.
template <class T>
void shifted_scaled(const T* x, const Wide<T>* center, double factor, std::int64_t n, float* out);

// A number that at least k of n values reach, and hardly more than k of them unless values are equal.
float reached_by(std::int64_t k, const float* values, std::int64_t n);

// Writes those j in [begin, end) to `found`, in order, for which
//   products[j] >= min(own_reach + offsets[j], reaches[j] + own_offset)
// and returns their number.
int survivors(const float* products, const float* offsets, const float* reaches, float own_offset,
              float own_reach, int begin, int end, std::int32_t* found);

}  // namespace agglo
