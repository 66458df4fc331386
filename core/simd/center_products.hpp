// Kernels that compare points with a float64 center. All machines compute the same bits.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// The kernels for rows of one number type. A row and the center have n columns.
struct CenterKernels {
  // Returns the squared distance between a row and the center.
  double (*squared_distance)(const double* center, const void* row, std::int64_t n);
  // Moves the center towards the row, by the fraction `share` of their difference.
  // Returns the squared distance between the row and the center before this move.
  double (*move)(double* center, const void* row, double share, std::int64_t n);
};
CenterKernels center_kernels(NumberType type);

}  // namespace agglo
