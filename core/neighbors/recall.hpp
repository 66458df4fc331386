// The recall of neighbour lists, measured on a sample of points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/lists.hpp"
#include "points/duplicates.hpp"
#include "points/space.hpp"

namespace agglo {

// The recall of a search: the share of the true neighbours that the search found.
// The recall is measured on a random sample of points. The sample points are compared with all points.
// A neighbour is true if it is at least as close as the exact k-th nearest neighbour.
struct Recall {
  double value;
  double error;  // half the width of the 99 % confidence interval of `value`
  std::int64_t sample;
};

// The recall that an approximate search has to reach.
struct RecallGoal {
  double recall;
  std::int64_t sample;        // number of points to measure the recall on
  std::int64_t max_attempts;  // maximum number of passes over all points (IVF) or of bands (MinHash)
  // If false, the search stops when the recall seems out of reach, or when an exact search seems cheaper
  // (IVF).
  bool accept_lower = true;
};

// Estimate the recall, given the number of true neighbours (at most k) found for each sample point.
Recall estimate_recall(std::span<const std::int64_t> right, std::int64_t k);
// Estimate the recall, given the share of the true neighbours that was found for each sample point.
Recall estimate_recall(std::span<const double> shares, std::int64_t k);

// Return a random sample of m of the points 0 .. n - 1, in increasing order.
// The points are divided into m ranges of about equal size. The sample has one point from each range.
std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed);

// The exact k nearest distinct points of each point in a sample. The recall is the share of these points that
// a search finds. A distinct point is addressed by its position in `ids`. The sample points are given by
// their positions.
class TrueNeighbors {
 public:
  TrueNeighbors(const Space& space, std::span<const std::int32_t> ids, std::int64_t k,
                std::vector<std::int32_t> positions, Gemm<float>* sgemm, ThreadPool& pool,
                const Report& report);

  std::span<const std::int32_t> positions() const { return positions_; }
  std::span<const Candidate> best(std::size_t query) const { return best_[query]; }

  // Return whether the point at a position is a true neighbour of a sample point.
  // A true neighbour is at least as close as the exact k-th nearest neighbour of the sample point.
  // Values are compared in float32, because results hold float32 values.
  bool is_true(std::size_t query, std::int64_t position) const {
    return position != positions_[query] &&
           is_as_close(space_.value(space_.similarity(ids_[positions_[query]], ids_[position])),
                       space_.value(best_[query].back().similarity));
  }
  bool is_as_close(float value, float last) const {
    return is_similarity(space_.metric()) ? value >= last : value <= last;
  }

 private:
  float offset(std::int64_t p) const;
  float keep_nearest(std::int64_t query);

  const Space& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_;
  std::vector<std::int32_t> positions_;
  std::vector<std::vector<Candidate>> best_;
};

// Measure the recall of neighbour lists with k entries each, on a sample of points.
// A list must contain neither repeated entries nor the point itself.
// If a list has fewer than k neighbours, the other entries are -1.
Recall measure_recall(const AnyPoints& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::vector<std::int32_t> sample, Gemm<float>* sgemm, ThreadPool& pool,
                      const Report& report = {});

// Measure the recall of neighbour lists on the points `sample`, given their true neighbours.
// The true neighbours of the first sample point are truth.best(from), and so on.
Recall measure_recall(const TrueNeighbors& truth, const Neighbors& found, const Space& space,
                      const Duplicates& duplicates, std::span<const std::int32_t> sample, std::size_t from,
                      std::int64_t k);

}  // namespace agglo
