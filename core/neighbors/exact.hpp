// The exact nearest neighbours of all points among all points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// BLAS sgemm and dgemm as Fortran calls them, from several threads at once; they must use no threads
// themselves.
template <class Real>
using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
                  int* ldb, Real* beta, Real* c, int* ldc);
struct Blas {
  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
};

struct Neighbors {
  std::vector<std::int32_t> indices;  // k of each point in turn, the closest first
  std::vector<float> values;
};

// The k closest other points of every point, 1 <= k < n: the first k by (value, smaller index), the value
// being summed in float64 from the points as given. That is a function of the points alone: all else only
// rules out what a bound excludes, so neither BLAS nor the threads' timing nor `basis` can be seen in the
// result.
//
// `basis` makes it fast for points that lie close to a few directions: an orthonormal basis of them, one
// vector of d numbers after the other, the most important first. Pairs of points are then compared by their
// coordinates in that basis first, and in full only if they may be close. Empty: all are compared in full.
//
// Memory beside points and result: 8 * (k + max(16, k / 4)) + 80 bytes a point, 4 bytes for every number of
// the coordinates, and some 10 MB a thread.
template <class T>
Neighbors nearest(const Points<T>& points, std::int64_t k, Metric metric, std::span<const double> basis,
                  const Blas& blas, ThreadPool& pool, const Report& report = {});

// The value of every pair: n - 1 values for each point in turn, by the index of the other.
template <class T>
std::vector<float> all_pairs(const Points<T>& points, Metric metric, ThreadPool& pool,
                             const Report& report = {});

}  // namespace agglo
