// Principal directions of points, with the same bits on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "points/space.hpp"

namespace agglo {

struct PrincipalDirections {
  std::vector<float> rows;      // orthonormal vectors, one after the other, the most important first
  std::vector<double> squares;  // for each direction, the sum of squared coordinates over all points
};

// Approximate the `count` principal directions of rows, 1 <= count <= rows.d.
// No number may be larger than 1. The method is subspace iteration from a fixed start.
PrincipalDirections find_principal_directions(const Points<float>& rows, std::int64_t count, int iterations);

// The eigenvalues of a symmetric matrix in descending order, and its eigenvectors, one per row.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace agglo
