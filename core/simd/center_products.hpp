// Distances between points of any number type and a float64 center, with the same bits on every machine.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// Return the squared distance between x and the center. Both have n columns.
template <class T>
double squared_distance_to(const double* center, const T* x, std::int64_t n);

// Return the squared distance between x and the center. Then move the center towards x by `share` of the way.
template <class T>
double move_center(double* center, const T* x, double share, std::int64_t n);

}  // namespace agglo
