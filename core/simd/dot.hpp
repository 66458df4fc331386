// SIMD kernels of the dense neighbour searches: dot products, distances and selection by threshold.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Return the dot product or the squared distance of two rows of float or double numbers.
// Terms are summed in float64, in an order that depends only on n.
// So all machines compute the same bits, and swapping the two rows does not change the result.
template <class T>
double dot(const T* x, const T* y, std::int64_t n);
template <class T>
double squared_distance(const T* x, const T* y, std::int64_t n);

// Return the dot product or the squared distance, computed in float32. float32 is faster than float64.
// No term of the sum is rounded more than n / 8 + 12 times.
float quick_dot(const float* x, const float* y, std::int64_t n);
float quick_squared_distance(const float* x, const float* y, std::int64_t n);

// The kernels for rows of one number type.
struct RowKernels {
  template <class Result>
  using Compare = Result(const void* x, const void* y, std::int64_t n);
  Compare<double>*dot, *squared_distance;
  Compare<float>*quick_dot, *quick_squared_distance;  // null for rows of float64
  // Sets out = (x - center) * factor, in float32. `center32` is `center` rounded to float32.
  // If the points are float64 or the factor is extreme, the computation uses float64.
  void (*shift_to_float)(const void* x, const float* center32, const double* center, double factor,
                         std::int64_t n, float* out);
  // Sets out = (x - center) * factor, in float64.
  void (*shift_to_double)(const void* x, const double* center, double factor, std::int64_t n, double* out);
};
RowKernels row_kernels(NumberType type);

// Return a threshold that at least k of n values reach.
// More than k values reach the threshold only if some values are equal or nearly equal.
float top_k_threshold(std::int64_t k, const float* values, std::int64_t n);

// Select the points j in [begin, end) that may be close to a given point, by upper bounds (see
// CandidateLists). Write the selected indices to `found` in increasing order, and return their number.
// A cutoff is the threshold of a point plus the offset of this point. Index j is selected if
//   products[j] >= min(own_cutoff + offsets[j], cutoffs[j] + own_offset).
int select_above(const float* products, const float* offsets, const float* cutoffs, float own_offset,
                 float own_cutoff, int begin, int end, std::int32_t* found);

}  // namespace agglo
