// Distances of points of any precision to a center in float64. The bits are the same on every machine.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Return the squared distance of x and the center, both of n columns.
template <class T>
double squared_distance_to(const double* center, const T* x, std::int64_t n);

// Return the same, and move the center by `share` of the way to x.
template <class T>
double move_center(double* center, const T* x, double share, std::int64_t n);

}  // namespace agglo
