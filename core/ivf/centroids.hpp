// Centroids, k-means, and a two-level index that finds the nearest centroids of a row.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// Return half the squared length of a row.
float half_squared_norm(const float* row, std::int64_t width);

// Centroids, each with an offset.
// Under distances, the offset is half the squared length of the centroid. Under dot product, it is 0.
// The score of a row and a centroid is their dot product minus the offset of the centroid.
// A larger score means that the centroid is nearer.
struct Centroids {
  std::int64_t width;
  std::vector<float> rows, offsets;

  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
  const float* row(std::int64_t c) const { return rows.data() + c * width; }
  void add(const float* row, float offset) {
    rows.insert(rows.end(), row, row + width);
    offsets.push_back(offset);
  }
};

// Compute n scores by subtracting offsets from products, in place. Return the index of the largest score.
// If several scores are largest, return the smallest of their indices.
std::int64_t argmax_score(float* products, const float* offsets, std::int64_t n);

// Run a few iterations of k-means on n rows and return `count` centroids.
// The initial centroids are evenly spaced rows.
Centroids run_kmeans(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count);

// A two-level index of centroids. k-means clusters the centroids into groups.
// A query row is compared only with the centroids in the groups that are nearest to the query.
// So the search is approximate: it may miss the nearest centroid.
// The result does not depend on the number of threads.
class CentroidIndex {
 public:
  // Build an index with `n_groups` groups. Each query probes the `n_probes` groups nearest to the query.
  CentroidIndex(const Centroids& centroids, std::int64_t n_groups, std::int64_t n_probes, ThreadPool& pool);

  // Buffers of one worker.
  struct Scratch {
    std::vector<float> rows, products, best;
    std::vector<std::int32_t> selected;
    std::vector<std::vector<std::int32_t>> queries;  // the queries that probe each group
    std::vector<std::vector<float>> scores;      // for each query, scores of the centroids compared with it
    std::vector<std::vector<std::int32_t>> ids;  // ids of these centroids
  };

  // Write the id of the nearest centroid of each of n rows to `out`.
  void find_nearest(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const;
  // Write the ids of the k nearest centroids of each of n rows to `out`, nearest first.
  void find_k_nearest(const float* rows, std::int64_t n, std::int64_t k, Scratch& s, std::int32_t* out) const;

 private:
  template <class Visit>
  void probe(const float* rows, std::int64_t n, std::int64_t min_seen, Scratch& s, const Visit& visit) const;

  const std::int64_t n_probes_;
  // `groups_` holds the centroid of each group. `members_` holds all centroids, sorted by group.
  Centroids groups_, members_;
  Csr ids_;  // the ids of the centroids in each group
};

// Return the k nearest centroids of every centroid. Each list starts with the centroid itself.
std::vector<std::int32_t> nearest_centroids(const Centroids& centroids, std::int64_t k, ThreadPool& pool,
                                            const Report& report);

}  // namespace agglo
