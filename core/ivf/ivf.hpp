// Approximate nearest neighbours of all points by an IVF index with int8 codes and exact re-ranking.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/recall.hpp"
#include "points/space.hpp"

namespace agglo {

// Parameters of the search; 0 means that the search chooses.
struct IvfParams {
  std::int64_t list_size = 0;     // points in an inverted list
  std::int64_t n_probes = 0;      // lists that each point scans
  std::int64_t n_candidates = 0;  // candidates of each point that are compared exactly
  std::int64_t n_passes = 0;      // scans of all points that were done; only in results
};

struct IvfResult {
  Neighbors neighbors;
  Recall recall;
  IvfParams params;                 // those that were used
  std::vector<std::int32_t> lists;  // the inverted list of each point
};

// Return nearly all of what `exact_neighbors` returns, with exact values.
//
// Parameters that are not given are chosen so that a sample of points reaches `recall`. The result is
// measured on another sample of `sample` points. While its recall is too low, all points are searched again
// with more effort, up to `max_passes` times. If no parameters suffice and `accept_lower_recall`, the best
// ones are used. Otherwise there are no neighbours, unless an earlier pass found some, and the recall is that
// of the sample.
//
// The result depends on the points, the arguments and the seed, not on the number of threads.
//
// `basis` speeds up the search for points that lie close to a few directions. It is an orthonormal basis of
// these, one vector of d numbers after the other. Candidates are then found by coordinates in the basis. If
// it is empty, they are found by whole rows.
//
// Memory besides points and result: one byte per number of the rows, 60 bytes per point, and a few MB per
// thread. With a basis, four more bytes per number before the result is allocated.
template <class T>
IvfResult ivf_neighbors(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                        const IvfParams& given, std::span<const float> basis, std::int64_t sample,
                        std::int64_t max_passes, bool accept_lower_recall, std::uint64_t seed,
                        const Blas& blas, ThreadPool& pool, const Report& report = {});

}  // namespace agglo
