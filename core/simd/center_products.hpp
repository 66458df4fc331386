// Points of any precision against a center in float64, in the widest instructions that the machine at hand
// has. Their results are the same bits on every machine.
#pragma once

#include <cstdint>

#include "base/numbers.hpp"

namespace agglo {

// The squared distance of x and the center, of n columns each.
template <class T>
double squared_distance_to(const double* center, const T* x, std::int64_t n);

// The same, after which the center has moved by `share` of its way to x.
template <class T>
double move_center(double* center, const T* x, double share, std::int64_t n);

}  // namespace agglo
