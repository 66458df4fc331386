// Distances between floating-point points and a float64 center. All machines compute the same bits.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Return the squared distance between x and the center. Both have n columns.
template <class T>
double squared_distance_to(const double* center, const T* x, std::int64_t n);

// Move the center towards x. Return the squared distance between x and the center before this move.
// The center moves by the fraction `share` of the difference between x and the center.
template <class T>
double move_center(double* center, const T* x, double share, std::int64_t n);

}  // namespace agglo
