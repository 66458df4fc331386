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

// The recall: the share of true neighbours that a search found.
// The recall is measured on a random sample of points, which are compared with all points.
// A neighbour counts as true if it is at least as close as the true k-th neighbour.
struct Recall {
  double value;
  double error;  // half the width of the 99 % confidence interval
  std::int64_t sample;
};

// The recall that an approximate search shall reach.
struct RecallGoal {
  double recall;
  std::int64_t sample;        // number of points to measure the recall on
  std::int64_t max_attempts;  // maximum number of passes over all points (IVF) or of bands (MinHash)
  bool accept_lower = true;   // whether to continue if the recall seems out of reach
};

// Estimate the recall from the number of true neighbours (at most k) that each sample point found.
Recall estimate_recall(std::span<const std::int64_t> right, std::int64_t k);
// Estimate the recall from the share of true neighbours that each sample point found.
Recall estimate_recall(std::span<const double> shares, std::int64_t k);

// Return m of n points in increasing order: one random point from each of m equal ranges.
std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed);

// The k nearest distinct points of each point in a sample, which are the reference for the recall of a
// search. The distinct points `ids` are addressed by their positions in `ids`. The sample consists of
// positions.
class TrueNeighbors {
 public:
  TrueNeighbors(const Space& space, std::span<const std::int32_t> ids, std::int64_t k,
                std::vector<std::int32_t> positions, Gemm<float>* sgemm, ThreadPool& pool,
                const Report& report);

  std::span<const std::int32_t> positions() const { return positions_; }
  std::span<const Candidate> best(std::size_t query) const { return best_[query]; }

  // Return whether a position is at least as close to a query as the query's k-th true neighbour.
  // Values are compared in float32, as in the result. Points that tie with the k-th count as true neighbours.
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

// Measure the recall of neighbour lists of length k on a sample of points.
// A list must contain neither repeated entries nor the point itself. An entry of -1 means no neighbour.
Recall measure_recall(const AnyPoints& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::vector<std::int32_t> sample, Gemm<float>* sgemm, ThreadPool& pool,
                      const Report& report = {});

// Measure the recall of neighbour lists. The sample points are the queries of `truth` with numbers >= `from`.
Recall measure_recall(const TrueNeighbors& truth, const Neighbors& found, const Space& space,
                      const Duplicates& duplicates, std::span<const std::int32_t> sample, std::size_t from,
                      std::int64_t k);

}  // namespace agglo
