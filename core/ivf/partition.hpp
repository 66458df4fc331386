// The inverted lists of an IVF index: a partition of the points into lists of a few hundred nearby points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "points/rows.hpp"

namespace agglo {

// A partition of the positions 0..n-1 of the distinct points into inverted lists. Invariants:
//  1. Every position is in exactly one list.
//  2. Every list has at most max_size(size) members. If there are several lists, each has at least min_size.
//  3. nearest(l) contains distinct lists. Its first entry is l.
//     The lists are ordered by the distance of their centroids to the centroid of l, nearest first.
// The partition depends on the source and the arguments, but not on the number of threads.
class Partition {
 public:
  static constexpr std::int64_t kNearest = 512;

  // Build lists of about `size` points, where `size` is at least 4 * min_size.
  // If `thorough` is true, each point may move to any list. Otherwise, most points move to nearby lists only.
  // A partition with few lists is always thorough.
  Partition(const RowSource& source, std::int64_t size, std::int64_t min_size, bool thorough, bool by_product,
            std::uint64_t seed, ThreadPool& pool, const Report& report);

  // Restore a partition, given the list of each position. No list may be empty.
  Partition(const RowSource& source, std::vector<std::int32_t> lists, bool by_product, ThreadPool& pool,
            const Report& report);

  static std::int64_t max_size(std::int64_t size) { return size + size / 2; }

  bool is_thorough() const { return thorough_; }
  std::int64_t count() const { return lists_.size(); }
  std::int32_t list(std::int64_t p) const { return list_[p]; }
  // Return the members of a list: the positions of its points, in increasing order.
  std::span<const std::int32_t> members(std::int64_t list) const { return lists_.row(list); }
  // Return the centroid of a list. The centroid is the mean of the members' rows, without outliers.
  const float* centroid(std::int64_t list) const { return centroids_.row(list); }
  // Return the offset of a list's centroid: half the squared length of the centroid, or 0 under dot product.
  float offset(std::int64_t list) const { return centroids_.offsets[list]; }
  std::span<const std::int32_t> nearest(std::int64_t list) const {
    return std::span(nearest_).subspan(list * n_nearest_, n_nearest_);
  }

 private:
  void compute_centroids(const RowSource& source, bool squares, ThreadPool& pool, const Report& report);
  void find_nearest_lists(std::int64_t n_nearest, ThreadPool& pool, const Report& report);
  double misassigned_share(const RowSource& source, ThreadPool& pool) const;
  std::vector<std::int32_t> closest_lists(const RowSource& source, bool search_all, ThreadPool& pool,
                                          const Report& report) const;
  void reassign(std::span<const std::int32_t> closest, std::int64_t max_size, std::int64_t min_size);

  Csr lists_;                          // the positions in each list
  std::vector<std::int32_t> list_;     // the list of each position
  std::vector<std::int32_t> nearest_;  // for each list, the n_nearest_ lists with the nearest centroids
  Centroids centroids_;
  std::int64_t n_nearest_ = 0;
  bool thorough_ = false;
};

}  // namespace agglo
