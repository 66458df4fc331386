// Nearest neighbours of queries (new points). The search is exact, or uses an approximate IVF index.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "ivf/ivf.hpp"
#include "ivf/partition.hpp"
#include "ivf/scan.hpp"
#include "neighbors/exact.hpp"
#include "points/duplicates.hpp"
#include "points/rows.hpp"
#include "points/space.hpp"

namespace agglo {

// Return the exact k nearest points of each query, nearest first. 1 <= k <= n.
// If two points are equally near, the point with the smaller index comes first.
// The result of a query does not depend on the other queries.
// Besides the points and the result, the search needs 80 bytes per point and a few MB per thread.
Neighbors exact_query(const AnyPoints& queries, const AnyPoints& points, std::int64_t k, Metric metric,
                      Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

// An IVF index that finds the approximate nearest points of queries. The method is that of `ivf_neighbors`.
// The points must outlive the index. The result of a query does not depend on the other queries.
class IvfIndex {
 public:
  // Build the index. If a parameter is 0, the index chooses it so that a sample of points reaches `recall`.
  // `known` may hold the inverted list of each point, found by `ivf_neighbors` with the same `basis`.
  // If all known lists are large enough, the index uses them. `known` may be empty.
  IvfIndex(const AnyPoints& points, std::int64_t k, Metric metric, const IvfParams& params, double recall,
           std::span<const std::int32_t> known, std::span<const float> basis, std::uint64_t seed,
           Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});
  IvfIndex(const IvfIndex&) = delete;
  IvfIndex& operator=(const IvfIndex&) = delete;

  Neighbors query(const AnyPoints& queries, ThreadPool& pool, const Report& report = {}) const;
  const IvfParams& params() const { return params_; }

 private:
  struct Batch;

  std::vector<std::int32_t> known_lists(std::span<const std::int32_t> known) const;
  void choose_params(double recall, std::uint64_t seed, ThreadPool& pool);
  void assign_queries(const AnyPoints& queries, Batch& batch, ThreadPool& pool) const;

  const AnyPoints points_;
  const std::int64_t k_;
  const bool product_;
  Gemm<float>* const sgemm_;
  const Space space_;
  const Duplicates duplicates_;
  const std::int64_t wanted_;  // number of distinct points per result
  const std::vector<float> basis_;
  IvfParams params_;
  std::unique_ptr<const RowSource> source_;
  std::unique_ptr<const Partition> partition_;
  std::unique_ptr<const CodedLists> coded_;
  std::unique_ptr<const CentroidIndex> centroid_index_;  // index of the centroids of the inverted lists
};

// Return a 64-bit hash of each row.
std::vector<std::uint64_t> hash_rows(const AnyPoints& points, ThreadPool& pool);

}  // namespace agglo
