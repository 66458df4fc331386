// Approximate nearest neighbours of all points: an IVF index with int8 residual codes and exact re-ranking.
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
  std::int64_t n_passes = 0;      // number of scans of all points; set in results only
};

struct IvfResult {
  Neighbors neighbors;
  Recall recall;
  IvfParams params;                 // the parameters used
  std::vector<std::int32_t> lists;  // the inverted list of each point
};

// Return approximate nearest neighbours with exact values: nearly the result of `exact_neighbors`.
//
// Parameters that are 0 are tuned until a sample of points reaches the recall of the goal.
// The recall of the result is then measured on another sample.
// If the recall is too low, all points are searched again with more probes or candidates.
// If no parameters reach the recall and the goal accepts a lower one, the best parameters are used.
// If it does not, the result of an earlier pass is returned, if there is one.
// Otherwise `neighbors` is empty, and `recall` is the recall of the tuning sample.
//
// The result depends on the points, the arguments and the seed, but not on the number of threads.
//
// A `basis` makes the search faster if the points lie close to a subspace of few dimensions.
// The basis contains orthonormal vectors of d numbers, one after the other.
// Candidates are then found by their coordinates in this basis. If the basis is empty, whole rows are used.
//
// Memory besides points and result:
// one byte per number of the rows, 60 bytes per point, and a few MB per thread.
// A basis needs four more bytes per number, which are freed before the result is allocated.
IvfResult ivf_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, const IvfParams& given,
                        const RecallGoal& goal, std::span<const float> basis, std::uint64_t seed,
                        Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

}  // namespace agglo
