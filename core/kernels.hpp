// The innermost loops of the neighbour search, in the widest instructions that the machine at hand has.
#pragma once

#include <cstdint>

namespace agglo {

// Sums in float64, in an order that depends on n alone: the same bits on every machine, and for (y, x).
double dot(const float* x, const float* y, std::int64_t n);
double dot(const double* x, const double* y, std::int64_t n);
double squared_distance(const float* x, const float* y, std::int64_t n);
double squared_distance(const double* x, const double* y, std::int64_t n);

// The same in float32: faster, but no two machines need agree. No term is rounded more than n / 8 + 12 times.
float quick_dot(const float* x, const float* y, std::int64_t n);
float quick_squared_distance(const float* x, const float* y, std::int64_t n);

// out = (x - center) * factor in float32; for float points in float32 throughout, if the factor allows it.
void shifted_scaled(const float* x, const float* center, double factor, std::int64_t n, float* out);
void shifted_scaled(const double* x, const double* center, double factor, std::int64_t n, float* out);

// A number that at least k of n values reach, and hardly more than k of them unless values are equal.
float reached_by(std::int64_t k, const float* values, std::int64_t n);

// Writes those j in [begin, end) to `found`, in order, for which
//   products[j] >= min(own_reach + offsets[j], reaches[j] + own_offset)
// and returns their number.
int survivors(const float* products, const float* offsets, const float* reaches, float own_offset,
              float own_reach, int begin, int end, std::int32_t* found);

}  // namespace agglo
