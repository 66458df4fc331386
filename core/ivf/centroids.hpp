// Centroids, k-means, and a two-level index that finds the nearest centroids of a row.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// Return half the squared length of a row.
float half_squared_norm(const float* row, std::int64_t width);

// Centroids, each with an offset: half its squared length, or 0 under the dot product.
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

// Subtract the offsets from n products to get scores. Return the index of the first largest score.
std::int64_t argmax_score(float* products, const float* offsets, std::int64_t n);

// Run a few iterations of k-means on n rows and return `count` centroids.
// The initial centroids are evenly spaced rows.
Centroids run_kmeans(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count);

// A two-level index of centroids, which clusters the centroids into groups.
// A query is compared only with the centroids in its nearest groups.
// So the search is approximate: it may miss the nearest centroid.
// The result does not depend on the number of threads.
class CentroidIndex {
 public:
  // Build `n_groups` groups. Each query probes its `n_probes` nearest groups.
  CentroidIndex(const Centroids& centroids, std::int64_t n_groups, std::int64_t n_probes, ThreadPool& pool);

  // Buffers of one worker.
  struct Scratch {
    std::vector<float> rows, products, best;
    std::vector<std::int32_t> selected;
    std::vector<std::vector<std::int32_t>> queries;  // the queries that probe each group
    std::vector<std::vector<float>> scores;          // scores of each query with the centroids in its groups
    std::vector<std::vector<std::int32_t>> ids;      // ids of these centroids
  };

  // Write the id of the nearest centroid of each of n rows to `out`.
  void find_nearest(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const;
  // Write the ids of the k nearest centroids of each of n rows to `out`, nearest first.
  void find_k_nearest(const float* rows, std::int64_t n, std::int64_t k, Scratch& s, std::int32_t* out) const;

 private:
  template <class Visit>
  void probe(const float* rows, std::int64_t n, std::int64_t min_seen, Scratch& s, const Visit& visit) const;

  const std::int64_t n_probes_;
  Centroids groups_, members_;  // centroids of the groups; all centroids, sorted by group
  Csr ids_;                     // ids of the centroids in each group
};

// Return the k nearest centroids of every centroid. Each list starts with the centroid itself.
std::vector<std::int32_t> nearest_centroids(const Centroids& centroids, std::int64_t k, ThreadPool& pool,
                                            const Report& report);

}  // namespace agglo
