// Centroids, k-means, and an index that finds the centroids nearest to a row without looking at all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// Return half the squared length of a row.
float half_squared_norm(const float* row, std::int64_t width);

// Rows with an offset each: half the squared length, or 0 under the dot product. The score of a row with a
// centroid is their product minus the offset of the centroid: the larger, the closer.
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

// Turn n products into scores by subtracting the offsets, and return the index of the first largest score.
std::int64_t argmax_score(float* products, const float* offsets, std::int64_t n);

// Return `count` centroids of n rows by a few iterations of k-means, which starts from evenly spaced rows.
Centroids run_kmeans(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count);

// A two-level index of centroids. The centroids are clustered into groups, and a query looks only into the
// groups whose own centroids are nearest to it. It may miss some centroids. The result does not depend on the
// number of threads.
class CentroidIndex {
 public:
  // Build `n_groups` groups. Each query looks into the `n_probes` nearest ones.
  CentroidIndex(const Centroids& centroids, std::int64_t n_groups, std::int64_t n_probes, ThreadPool& pool);

  // Buffers of one worker.
  struct Scratch {
    std::vector<float> rows, products, best;
    std::vector<std::int32_t> selected;
    std::vector<std::vector<std::int32_t>> queries;  // the rows that look into each group
    std::vector<std::vector<float>> scores;          // of each row with the centroids it was compared with,
    std::vector<std::vector<std::int32_t>> ids;      // and the ids of these
  };

  // Write the nearest centroid of each of n rows.
  void find_nearest(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const;
  // Write the k nearest centroids of each of n rows, the nearest first.
  void find_k_nearest(const float* rows, std::int64_t n, std::int64_t k, Scratch& s, std::int32_t* out) const;

 private:
  template <class Visit>
  void probe(const float* rows, std::int64_t n, std::int64_t min_seen, Scratch& s, const Visit& visit) const;

  const std::int64_t n_probes_;
  Centroids groups_, members_;  // centroids of the groups; all centroids, group by group
  Csr ids_;                     // of the members of each group
};

// Return for every centroid the k centroids nearest to it, itself first.
std::vector<std::int32_t> nearest_centroids(const Centroids& centroids, std::int64_t k, ThreadPool& pool,
                                            const Report& report);

}  // namespace agglo
