// Principal directions of points, as in PCA. All machines compute the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "points/space.hpp"

namespace agglo {

struct PrincipalDirections {
  std::vector<float> rows;  // orthonormal vectors, one after the other, in descending order of `squares`
  // For each direction, the sum of the squared coordinates of all points along this direction.
  std::vector<double> squares;
};

// Return an approximation of the first `count` principal directions of rows. 1 <= count <= rows.d.
// No number in the rows may be larger than 1.
// The method is subspace iteration. It starts from fixed pseudorandom directions.
PrincipalDirections find_principal_directions(const Points<float>& rows, std::int64_t count, int iterations);

// The eigenvalues of a symmetric matrix in descending order, and its eigenvectors.
// Row i of `vectors` is the eigenvector of values[i].
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace agglo
