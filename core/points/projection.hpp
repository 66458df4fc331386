// The main directions of points, whose bits are the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

struct Directions {
  std::vector<float> rows;      // orthonormal, one after the other, the most important first
  std::vector<double> squares;  // the sum over all points of the squared coordinate in each
};

// Nearly the `count` principal directions of n rows of d numbers, none larger than 1, by `iterations` of
// subspace iteration from a fixed start. 1 <= count <= d.
Directions main_directions(const float* rows, std::int64_t n, std::int64_t d, std::int64_t count,
                           int iterations);

// The eigenvalues of a symmetric matrix of n rows, in descending order, and its eigenvectors, one row each.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace agglo
