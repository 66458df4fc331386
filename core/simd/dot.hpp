// Dot products, distances and selections over dense rows: the kernels of the neighbour searches.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Return the product or the squared distance of two rows, summed in float64. The order of the sum depends on
// n alone, so the bits are the same on every machine, and for (y, x).
template <class T>
double dot(const T* x, const T* y, std::int64_t n);
template <class T>
double squared_distance(const T* x, const T* y, std::int64_t n);

// Return the same in float32, which is faster. No term is rounded more than n / 8 + 12 times. Not for
// float64.
template <class T>
float quick_dot(const T* x, const T* y, std::int64_t n);
template <class T>
float quick_squared_distance(const T* x, const T* y, std::int64_t n);

// Set out = (x - center) * factor, in float32. Points in float64, or extreme factors, are computed in
// float64.
template <class T>
void shift_and_scale(const T* x, const Wide<T>* center, double factor, std::int64_t n, float* out);

// Return a number that at least k of n values reach, and not more than k unless values are equal or nearly
// so.
float top_k_threshold(std::int64_t k, const float* values, std::int64_t n);

// Write those j in [begin, end) to `found`, in order, for which
//   products[j] >= min(own_cutoff + offsets[j], cutoffs[j] + own_offset)
// and return their number.
int select_above(const float* products, const float* offsets, const float* cutoffs, float own_offset,
                 float own_cutoff, int begin, int end, std::int32_t* found);

}  // namespace agglo
