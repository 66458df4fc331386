// The exact nearest neighbours of all points among all points.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace agglo {

enum class Metric { dot, cosine, sqeuclidean, euclidean };  // the first two are similarities

// BLAS sgemm as Fortran calls it. It is called from several threads at once and must itself use only one.
using Sgemm = void(char* transa, char* transb, int* m, int* n, int* k, float* alpha, float* a, int* lda,
                   float* b, int* ldb, float* beta, float* c, int* ldc);

// Points that somebody else owns: n rows of d finite numbers, none larger than 1e100.
template <class T>
struct Points {
  const T* data;
  std::int64_t n, d;

  const T* row(std::int64_t i) const { return data + i * d; }
};

struct Neighbors {
  std::vector<std::int32_t> indices;  // k of each point in turn, the closest first
  std::vector<float> values;
};

// The k closest other points of every point, 1 <= k < n: the first k by (value, smaller index), the value
// being summed in float64 from the points as given. That is a function of the points alone: products in
// float32 only rule out what their error bound excludes, so neither BLAS nor the threads' timing can be seen
// in the result.
//
// Memory beside points and result: about 8 * max(16, k / 4) + 24 bytes a point, and some 10 MB a thread.
template <class T>
Neighbors nearest(const Points<T>& points, std::int64_t k, Metric metric, Sgemm* sgemm, Team& team,
                  const Report& report = {});

// The value of every pair: n - 1 values for each point in turn, by the index of the other.
template <class T>
std::vector<float> all_pairs(const Points<T>& points, Metric metric, Team& team, const Report& report = {});

}  // namespace agglo
