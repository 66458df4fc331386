// The nearest of many points, for points that are not among them.
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
#include "points/order.hpp"
#include "points/rows.hpp"
#include "points/space.hpp"

namespace agglo {

// The k closest points of each query, 1 <= k <= n: the first k by (value, smaller index), exactly. What is
// found for a query is up to it and the points alone. Memory beside points and result: 80 bytes a point, and
// some MB a thread.
template <class T>
Neighbors nearest_to(const Points<T>& queries, const Points<T>& points, std::int64_t k, Metric metric,
                     Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

// Points in cells, kept for queries: nearly all of the k closest points of each, as `nearly_nearest` finds
// them. The points must outlive it. What is found for a query is up to it and the index alone.
template <class T>
class CellIndex {
 public:
  // `effort` that is not given is what a sample of the points takes to reach `recall`. `cells` are those that
  // `nearly_nearest` put the points into, where they are known and large enough, and are made otherwise;
  // `basis` is as it was then.
  CellIndex(const Points<T>& points, std::int64_t k, Metric metric, double recall, const Effort& effort,
            std::span<const std::int32_t> cells, std::span<const float> basis, std::uint64_t seed,
            const Blas& blas, ThreadPool& pool, const Report& report = {});
  CellIndex(const CellIndex&) = delete;
  CellIndex& operator=(const CellIndex&) = delete;

  Neighbors nearest_to(const Points<T>& queries, ThreadPool& pool, const Report& report = {}) const;
  const Effort& effort() const { return effort_; }

 private:
  class Finish;
  struct Batch;

  std::vector<std::int32_t> known_homes(std::span<const std::int32_t> cells) const;
  void learn(double recall, std::uint64_t seed, ThreadPool& pool);
  void find_homes(const Points<T>& queries, Batch& batch, ThreadPool& pool) const;

  const Points<T> points_;
  const std::int64_t k_;
  const bool product_;
  const Blas blas_;
  const Space<T> space_;
  const Copies groups_;
  const std::int64_t wanted_;  // distinct points in a list
  const std::vector<float> basis_;
  Effort effort_;
  std::unique_ptr<const Images> images_;
  std::unique_ptr<const Partition> cells_;
  std::unique_ptr<const CodedCells> coded_;
  std::unique_ptr<const Groups> homes_;  // the cells, by where they are
};

// A hash of each row.
template <class T>
std::vector<std::uint64_t> row_hashes(const Points<T>& points, ThreadPool& pool);

}  // namespace agglo
