// Approximate nearest neighbours of all points by an IVF index with int8 residual codes and exact re-ranking.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/recall.hpp"
#include "points/space.hpp"

namespace agglo {

// Parameters of the IVF search. If a parameter is 0, the search chooses it.
struct IvfParams {
  std::int64_t list_size = 0;     // points per inverted list
  std::int64_t n_probes = 0;      // inverted lists scanned per point
  std::int64_t n_candidates = 0;  // candidates re-ranked exactly per point
  std::int64_t n_passes = 0;      // number of searches of all points; only set in results
};

struct IvfResult {
  Neighbors neighbors;
  Recall recall;
  IvfParams params;                 // the parameters used
  std::vector<std::int32_t> lists;  // the inverted list of each point
};

// Return the approximate k nearest neighbours of all points. The values of the neighbours are exact.
//
// If a parameter is 0, the search tunes it until a sample of points reaches the recall of the goal.
// After the search of all points, the recall of the result is measured on another sample.
// If the measured recall is too low, all points are searched again with more probes or candidates.
//
// If no parameters reach the recall and goal.accept_lower is true, the search uses the best parameters.
// If goal.accept_lower is false, the search stops as soon as no parameters reach the recall, or as an exact
// search is estimated to be cheaper. If all points were searched before, the function returns the result of
// this search. Otherwise, `neighbors` is empty, and `recall` is the recall of the tuning sample.
//
// The result depends on the points, the arguments and the seed, but not on the number of threads.
//
// A `basis` makes the search faster if the points lie close to a subspace of few dimensions.
// The basis contains orthonormal vectors of d numbers, one after the other.
// If there is a basis, candidates are found by their coordinates in the basis.
// If the basis is empty, candidates are found by all columns.
//
// Besides the points and the result, the search needs 60 bytes per point and a few MB per thread.
// Each column of a point, or each coordinate in the basis, needs one more byte for its code.
// With a basis, each coordinate needs four more bytes, which are freed before the result is allocated.
IvfResult ivf_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, const IvfParams& given,
                        const RecallGoal& goal, std::span<const float> basis, std::uint64_t seed,
                        Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

}  // namespace agglo
