// Exact assignment of points to their nearest centers. float32 matrix products exclude most centers early.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// Return the integers first, first + 1, ..., last - 1.
std::vector<std::int32_t> index_range(std::int64_t first, std::int64_t last);

// Compares points with centers.
//
// The BLAS function sgemm computes float32 dot products of points and centers.
// The error bound of these products excludes most pairs of a point and a center.
// The squared distance of every remaining pair is summed in float64.
// So results depend neither on BLAS nor on the block size.
// The matrix of all distances is never in memory.
//
// The score of a point x and a center c is |c|^2 / 2 - x.c. A smaller score means closer.
// The score equals half the squared distance of x and c minus |x|^2 / 2.
// Before the score is computed, x and c are shifted by about the mean of the points.
// Points and centers are also scaled by a power of two, so that their lengths are about 1.
class CenterScan {
 public:
  // Buffers of one worker. They take about 4 MB.
  struct Scratch {
    std::vector<float> rows, columns, products, offsets;
    std::vector<float> reach, slack;
    std::vector<double> row, squares;
    std::vector<std::int32_t> found;
  };

  CenterScan(const AnyPoints& points, Gemm<float>* sgemm, ThreadPool& pool);

  const AnyPoints& points() const { return points_; }

  // Return the number of rows for which a call of pairs() is most efficient.
  std::int64_t block() const { return block_; }

  using Reach = std::function<double(std::int64_t r)>;
  using Visit = std::function<void(std::int64_t r, std::int64_t c, double squared_distance)>;

  // Call visit(r, c, squared distance) for every close pair of the point rows[r] and the center ids[c].
  // A pair is close if its squared distance is at most reach(r). Some other pairs are visited, too.
  // The pairs of a row are visited in increasing order of c. visit() may lower reach(r).
  // If `only_nearest` is true, a close pair may be skipped if the point has a nearer center.
  // Center k consists of the d numbers that start at centers + k * d.
  void pairs(std::span<const std::int32_t> rows, const double* centers, std::span<const std::int32_t> ids,
             bool only_nearest, Scratch& scratch, const Reach& reach, const Visit& visit) const;

  // Set label[row] to the id of the nearest center in `ids`, and square[row] to its squared distance.
  // If the previous center of a row is nearer, label[row] and square[row] stay unchanged.
  // If both centers are equally near, the center with the smaller id is kept.
  void nearest(std::span<const std::int32_t> rows, const double* centers, std::span<const std::int32_t> ids,
               std::vector<double>& square, std::vector<std::int32_t>& label, ThreadPool& pool,
               const Report& report);

 private:
  double slack(double square) const { return relative_ * square + absolute_; }
  double panel(const double* x, float* out) const;

  AnyPoints points_;
  Gemm<float>* sgemm_;
  std::int64_t block_;
  std::vector<double> origin_;
  double scale_ = 1, relative_, absolute_;
  std::vector<Scratch> scratch_;
};

}  // namespace agglo::paper
