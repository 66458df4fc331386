#include "points/projection.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/random.hpp"
#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

std::vector<float> transpose(const float* matrix, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t block = 32;
  std::vector<float> out(rows * columns);
  for (std::int64_t i = 0; i < rows; i += block)
    for (std::int64_t j = 0; j < columns; j += block)
      for (std::int64_t r = i; r < std::min(rows, i + block); ++r)
        for (std::int64_t c = j; c < std::min(columns, j + block); ++c)
          out[c * rows + r] = matrix[r * columns + c];
  return out;
}

// Orthonormalizes rows in place by the Gram-Schmidt process.
// If a row is a linear combination of earlier rows, the row becomes 0.
void orthonormalize(std::vector<float>& rows, std::int64_t count, std::int64_t d) {
  // If subtracting earlier rows leaves less than this fraction of a row's length, the remainder is a rounding
  // error.
  constexpr double least = 1e-5;
  for (std::int64_t i = 0; i < count; ++i) {
    float* row = rows.data() + i * d;
    const double before = std::sqrt(dot(row, row, d));
    for (int pass = 0; pass < 2; ++pass)  // the second pass removes the rounding errors of the first
      for (std::int64_t e = 0; e < i; ++e) {
        const float* other = rows.data() + e * d;
        const auto share = static_cast<float>(dot(row, other, d));
        for (std::int64_t j = 0; j < d; ++j) row[j] -= share * other[j];
      }
    const double length = std::sqrt(dot(row, row, d));
    const auto factor = static_cast<float>(length > least * before ? 1 / length : 0);
    for (std::int64_t j = 0; j < d; ++j) row[j] *= factor;
  }
}

// Reduces a symmetric matrix to tridiagonal form by Householder reflections.
// See Golub and Van Loan, algorithm 8.3.1.
// `matrix` becomes the orthogonal transformation, with one row per vector of the new basis.
void tridiagonalize(std::vector<double>& matrix, std::int64_t n, std::vector<double>& diagonal,
                    std::vector<double>& off) {
  const auto a = [&](std::int64_t i, std::int64_t j) -> double& { return matrix[i * n + j]; };
  std::vector<double> basis(n * n, 0.0), v(n), p(n);
  for (std::int64_t i = 0; i < n; ++i) basis[i * n + i] = 1;
  for (std::int64_t k = 0; k + 2 < n; ++k) {
    // The reflection sets the entries of row k to the right of the first off-diagonal entry to 0.
    double square = 0;
    for (std::int64_t j = k + 1; j < n; ++j) square += a(k, j) * a(k, j);
    const double length = std::sqrt(square), first = a(k, k + 1);
    if (length == 0 || square == first * first) continue;
    std::copy_n(&a(k, k + 1), n - k - 1, v.begin() + k + 1);
    v[k + 1] = first < 0 ? first - length : first + length;
    const double half = square + std::abs(first) * length;  // half the squared length of v
    double dots = 0;
    for (std::int64_t i = k + 1; i < n; ++i) {
      p[i] = dot(&a(i, k + 1), &v[k + 1], n - k - 1) / half;
      dots += p[i] * v[i];
    }
    const double share = dots / (2 * half);
    for (std::int64_t i = k + 1; i < n; ++i) p[i] -= share * v[i];
    for (std::int64_t i = k + 1; i < n; ++i)
      for (std::int64_t j = k + 1; j < n; ++j) a(i, j) -= v[i] * p[j] + p[i] * v[j];
    a(k, k + 1) = a(k + 1, k) = first < 0 ? length : -length;
    for (std::int64_t j = k + 2; j < n; ++j) a(k, j) = a(j, k) = 0;
    // Apply the reflection to the basis, from the left.
    std::fill(p.begin(), p.end(), 0.0);
    for (std::int64_t i = k + 1; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) p[j] += v[i] * basis[i * n + j];
    for (std::int64_t i = k + 1; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) basis[i * n + j] -= v[i] / half * p[j];
  }
  diagonal.resize(n);
  off.assign(n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    diagonal[i] = a(i, i);
    if (i + 1 < n) off[i] = a(i, i + 1);
  }
  matrix = std::move(basis);
}

// Diagonalizes a tridiagonal matrix by implicit QL steps.
// Applies the rotations of these steps to the rows of `vectors`, too.
void diagonalize(std::vector<double>& diagonal, std::vector<double>& off, std::vector<double>& vectors,
                 std::int64_t n) {
  constexpr int most = 60;  // maximum number of steps per eigenvalue; two or three are usual
  for (std::int64_t l = 0; l < n; ++l)
    for (int step = 0;; ++step) {
      std::int64_t m = l;
      for (; m + 1 < n; ++m) {
        const double scale = std::abs(diagonal[m]) + std::abs(diagonal[m + 1]);
        if (std::abs(off[m]) <= 0x1p-53 * scale) break;
      }
      if (m == l) break;
      if (step == most) throw std::runtime_error("the eigenvalues of a symmetric matrix do not converge");
      double g = (diagonal[l + 1] - diagonal[l]) / (2 * off[l]);
      const double root = std::sqrt(g * g + 1);
      g = diagonal[m] - diagonal[l] + off[l] / (g + (g < 0 ? -root : root));
      double s = 1, c = 1, shift = 0;
      std::int64_t i = m - 1;
      for (; i >= l; --i) {
        const double f = s * off[i], b = c * off[i], r = std::sqrt(f * f + g * g);
        off[i + 1] = r;
        if (r == 0) {
          diagonal[i + 1] -= shift;
          off[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - shift;
        const double t = (diagonal[i] - g) * s + 2 * c * b;
        shift = s * t;
        diagonal[i + 1] = g + shift;
        g = c * t - b;
        double *upper = vectors.data() + (i + 1) * n, *lower = vectors.data() + i * n;
        for (std::int64_t j = 0; j < n; ++j) {
          const double x = upper[j];
          upper[j] = s * lower[j] + c * x;
          lower[j] = c * lower[j] - s * x;
        }
      }
      if (i >= l) continue;
      diagonal[l] -= shift;
      off[l] = g;
      off[m] = 0;
    }
}

}  // namespace

Eigen symmetric_eigen(std::vector<double> matrix, std::int64_t n) {
  std::vector<double> diagonal, off;
  tridiagonalize(matrix, n, diagonal, off);
  diagonalize(diagonal, off, matrix, n);
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return diagonal[a] > diagonal[b]; });
  Eigen eigen;
  for (const std::int64_t i : order) {
    eigen.values.push_back(diagonal[i]);
    eigen.vectors.insert(eigen.vectors.end(), matrix.begin() + i * n, matrix.begin() + (i + 1) * n);
  }
  return eigen;
}

PrincipalDirections find_principal_directions(const Points<float>& rows, std::int64_t count, int iterations) {
  const auto [data, n, d] = rows;
  const std::vector<float> columns = transpose(data, n, d);
  std::vector<float> basis(count * d), inside, next;
  std::uint64_t state = 0;
  for (float& x : basis)  // a random number, uniform in [-1, 1)
    x = static_cast<float>(static_cast<std::int64_t>(next_splitmix64(state) >> 40)) * 0x1p-23f - 1;
  const auto coordinates = [&] {  // computes the coordinates of all rows, one direction after the other
    multiply_rows(basis.data(), count, rows.data, rows.n, rows.d, inside);
  };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    coordinates();
    multiply_rows(inside.data(), count, columns.data(), d, n, next);
    basis.swap(next);
    orthonormalize(basis, count, d);
  }
  coordinates();
  multiply_rows(inside.data(), count, inside.data(), count, n, next);
  const Eigen axes = symmetric_eigen({next.begin(), next.begin() + count * count}, count);
  const std::vector<float> turn(axes.vectors.begin(), axes.vectors.end());
  const std::vector<float> turned = transpose(basis.data(), count, d);
  PrincipalDirections found{{}, axes.values};
  multiply_rows(turn.data(), count, turned.data(), d, count, found.rows);
  found.rows.resize(count * d);
  return found;
}

}  // namespace agglo
