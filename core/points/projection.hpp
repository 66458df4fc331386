// Principal directions of points, with the same bits on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

struct PrincipalDirections {
  std::vector<float> rows;      // orthonormal, one after the other, the most important first
  std::vector<double> squares;  // the sum over all points of the squared coordinate in each
};

// Approximate the `count` principal directions of n rows of d numbers, none larger than 1, by subspace
// iteration from a fixed start. 1 <= count <= d.
PrincipalDirections principal_directions(const float* rows, std::int64_t n, std::int64_t d,
                                         std::int64_t count, int iterations);

// The eigenvalues of a symmetric matrix of n rows, in descending order, and its eigenvectors, one per row.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace agglo
