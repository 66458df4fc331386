#include <algorithm>
#include <random>
#include <vector>

#include "ivf/centroids.hpp"
#include "test_case.hpp"

namespace {

using agglo::CentroidIndex;
using agglo::Centroids;
using agglo::ThreadPool;

// Returns random rows around 30 means. Every ninth row is a duplicate of the previous row.
std::vector<float> make_points(std::int64_t n, std::int64_t width, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> means(30 * width), rows(n * width);
  for (float& x : means) x = 3 * normal(rng);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t mean = rng() % 30;
    for (std::int64_t j = 0; j < width; ++j) rows[i * width + j] = means[mean * width + j] + normal(rng);
    if (i % 9 == 8) std::copy_n(rows.begin() + (i - 1) * width, width, rows.begin() + i * width);
  }
  return rows;
}

Centroids centroids_of(const std::vector<float>& rows, std::int64_t width, bool squares) {
  Centroids centroids{width, {}, {}};
  for (std::size_t at = 0; at < rows.size(); at += width)
    centroids.add(rows.data() + at, squares ? agglo::half_squared_norm(rows.data() + at, width) : 0);
  return centroids;
}

float score(const Centroids& centroids, const float* row, std::int64_t c) {
  float sum = 0;
  for (std::int64_t j = 0; j < centroids.width; ++j) sum += row[j] * centroids.row(c)[j];
  return sum - centroids.offsets[c];
}

// Checks the nearest centroid and the k nearest centroids of each row. Their recall must be at least `least`.
void check_probes(std::int64_t probes, bool squares, double least) {
  const std::int64_t width = 6, n = 700, n_queries = 300, reach = 9;
  const Centroids centroids = centroids_of(make_points(n, width, 1), width, squares);
  const std::vector<float> rows = make_points(n_queries, width, 2);
  std::vector<std::int32_t> first;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const CentroidIndex groups(centroids, 25, probes, pool);
    CentroidIndex::Scratch scratch;
    std::vector<std::int32_t> one(n_queries), several(n_queries * reach);
    groups.find_nearest(rows.data(), n_queries, scratch, one.data());
    groups.find_k_nearest(rows.data(), n_queries, reach, scratch, several.data());
    double right = 0, together = 0;
    for (std::int64_t i = 0; i < n_queries; ++i) {
      const float* row = rows.data() + i * width;
      std::vector<float> all(n);
      for (std::int64_t c = 0; c < n; ++c) all[c] = score(centroids, row, c);
      std::vector<std::int32_t> own(several.begin() + i * reach, several.begin() + (i + 1) * reach);
      CHECK(all[one[i]] == all[own[0]]);
      for (std::int64_t r = 1; r < reach; ++r) CHECK(all[own[r - 1]] >= all[own[r]]);
      std::vector<float> sorted = all;
      std::sort(sorted.rbegin(), sorted.rend());
      right += all[one[i]] == sorted[0];
      for (const std::int32_t c : own) together += all[c] >= sorted[reach - 1];
      std::sort(own.begin(), own.end());
      CHECK(std::adjacent_find(own.begin(), own.end()) == own.end());
    }
    CHECK(right >= least * n_queries && together >= least * n_queries * reach);
    if (threads == 1) first = several;
    CHECK(several == first);
  }
}

void check_nearest_centroids(std::int64_t n, std::int64_t reach) {
  const std::int64_t width = 5;
  const Centroids centroids = centroids_of(make_points(n, width, 3), width, true);
  ThreadPool pool(2);
  const auto close = agglo::nearest_centroids(centroids, reach, pool, {});
  for (std::int64_t c = 0; c < n; ++c) {
    std::vector<std::int32_t> own(close.begin() + c * reach, close.begin() + (c + 1) * reach);
    CHECK(own[0] == c);
    std::sort(own.begin(), own.end());
    CHECK(own[0] >= 0 && own.back() < n && std::adjacent_find(own.begin(), own.end()) == own.end());
  }
}

}  // namespace

TEST_CASE("probing all groups finds the nearest centroids exactly") {
  for (const bool squares : {true, false}) check_probes(25, squares, 1);
}

TEST_CASE("probing few groups finds most of the nearest centroids") {
  for (const bool squares : {true, false}) {
    check_probes(6, squares, 0.9);
    check_probes(1, squares, 0.3);
  }
}

TEST_CASE("the list of nearest centroids starts with the centroid itself and has no duplicates") {
  check_nearest_centroids(1, 1);
  check_nearest_centroids(40, 40);
  check_nearest_centroids(5000, 7);  // enough centroids for several groups
}

TEST_CASE("equal centroids are all found, although all groups but one are empty") {
  const std::vector<float> same(200 * 3, 1.0f);
  ThreadPool pool(1);
  const CentroidIndex groups(centroids_of(same, 3, true), 20, 2, pool);
  CentroidIndex::Scratch scratch;
  std::vector<std::int32_t> several(2 * 200);
  groups.find_k_nearest(same.data(), 2, 200, scratch, several.data());
  std::sort(several.begin(), several.begin() + 200);
  for (std::int32_t c = 0; c < 200; ++c) CHECK(several[c] == c);
}
