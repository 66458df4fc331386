// The innermost loops of the neighbour search, in the widest instructions that the machine at hand has.
// Their results are the same bits on every machine.
#pragma once

#include <cstdint>

namespace agglo {

// Sums in float64, in an order that depends on n alone; swapping x and y changes nothing.
double dot(const float* x, const float* y, std::int64_t n);
double dot(const double* x, const double* y, std::int64_t n);
double squared_distance(const float* x, const float* y, std::int64_t n);
double squared_distance(const double* x, const double* y, std::int64_t n);

// Writes those j in [begin, end) to `found`, in order, for which
//   products[j] >= min(own_reach + offsets[j], reaches[j] + own_offset)
// and returns their number.
int survivors(const float* products, const float* offsets, const float* reaches, float own_offset,
              float own_reach, int begin, int end, std::int32_t* found);

}  // namespace agglo
