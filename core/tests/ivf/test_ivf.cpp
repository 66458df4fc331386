#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "blas.hpp"
#include "ivf/ivf.hpp"
#include "ivf/partition.hpp"
#include "points/duplicates.hpp"
#include "test_case.hpp"

namespace {

using agglo::Metric;
using agglo::Partition;
using agglo::Points;
using agglo::ThreadPool;

// Returns clusters of very different sizes, with many duplicates.
template <class T>
std::vector<T> make_points(std::int64_t n, std::int64_t d, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> centers(20 * d);
  for (double& x : centers) x = 3 * normal(rng);
  std::vector<T> data(n * d);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t group = rng() % 2 ? 0 : rng() % 20;
    for (std::int64_t j = 0; j < d; ++j)
      data[i * d + j] = static_cast<T>(centers[group * d + j] + normal(rng));
    if (i % 7 == 6) std::copy_n(data.begin() + (rng() % i) * d, d, data.begin() + i * d);
  }
  return data;
}

void check_partition(std::int64_t n, std::int64_t size, std::int64_t least, bool by_product) {
  const std::int64_t d = 4;
  auto data = make_points<float>(n, d, 5);
  std::fill_n(data.begin(), n / 3 * d, 1.0f);  // equal points, which k-means cannot separate
  const Points<float> points{data.data(), n, d};
  ThreadPool pool(3);
  const agglo::Space space(points, Metric::sqeuclidean, pool);
  std::vector<std::int32_t> ids(n);
  for (std::int64_t i = 0; i < n; ++i) ids[i] = static_cast<std::int32_t>(i);
  const agglo::FullRows source(space, ids);
  const Partition partition(source, size, least, false, by_product, 1, pool, {});
  std::vector<int> seen(n, 0);
  for (std::int64_t c = 0; c < partition.count(); ++c) {
    const std::int64_t members = static_cast<std::int64_t>(partition.members(c).size());
    CHECK(members <= Partition::max_size(size) && (members >= least || partition.count() == 1));
    for (const std::int32_t p : partition.members(c)) {
      ++seen[p];
      CHECK(partition.list(p) == c);
    }
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  for (std::int64_t c = 0; c < partition.count(); ++c) {
    std::vector<std::int32_t> near(partition.nearest(c).begin(), partition.nearest(c).end());
    CHECK(near[0] == c);
    std::sort(near.begin(), near.end());
    CHECK(std::adjacent_find(near.begin(), near.end()) == near.end());
  }
}

template <class T>
void check_search(std::int64_t n, std::int64_t d, std::int64_t k, Metric metric) {
  const auto data = make_points<T>(n, d, 3);
  const Points<T> points{data.data(), n, d};
  agglo::IvfResult first;
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const auto exact = agglo::exact_neighbors(points, k, metric, {}, blas, pool);
    const auto found =
        agglo::ivf_neighbors(points, k, metric, {60, 0, 0, 0}, {0.95, 100, 4}, {}, 11, blas.sgemm, pool);
    double right = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float last = exact.values[i * k + k - 1];
      for (std::int64_t s = i * k; s < (i + 1) * k; ++s) {
        right +=
            is_similarity(metric) ? found.neighbors.values[s] >= last : found.neighbors.values[s] <= last;
        CHECK(found.neighbors.indices[s] != i);
      }
    }
    right /= static_cast<double>(n * k);
    CHECK(found.recall.value >= 0.95 && found.recall.sample == 100);
    CHECK(right > 0.9);
    if (threads == 1) first = found;
    CHECK(found.neighbors.indices == first.neighbors.indices);
    CHECK(found.neighbors.values == first.neighbors.values);
    CHECK(found.recall.value == first.recall.value);
  }
}

}  // namespace

TEST_CASE("a partition has each point once, in lists of allowed sizes") {
  check_partition(1500, 40, 10, false);
  check_partition(1500, 40, 10, true);
  check_partition(300, 400, 10, false);
}

TEST_CASE("the search reaches the recall asked for, with any number of threads") {
  check_search<float>(1200, 6, 5, Metric::sqeuclidean);
  check_search<double>(900, 3, 5, Metric::cosine);
  check_search<float>(900, 5, 4, Metric::dot);
}

TEST_CASE("equal points have neighbours at distance 0") {
  const std::vector<float> same(50 * 3, 2.0f);
  ThreadPool pool(2);
  const auto copies = agglo::ivf_neighbors(Points<float>{same.data(), 50, 3}, 4, Metric::euclidean, {},
                                           {0.95, 10, 4}, {}, 0, blas.sgemm, pool);
  CHECK(std::all_of(copies.neighbors.values.begin(), copies.neighbors.values.end(),
                    [](float value) { return value == 0; }));
}

TEST_CASE("a point cannot have more neighbours than there are other points") {
  const std::vector<float> same(50 * 3, 2.0f);
  ThreadPool pool(2);
  CHECK(throws<std::invalid_argument>([&] {
    agglo::ivf_neighbors(Points<float>{same.data(), 50, 3}, 50, Metric::dot, {}, {0.95, 10, 4}, {}, 0,
                         blas.sgemm, pool);
  }));
}

TEST_CASE("an exception of the progress function stops the search") {
  const auto data = make_points<float>(3000, 4, 1);
  ThreadPool pool(2);
  CHECK(throws<std::runtime_error>([&] {
    agglo::ivf_neighbors(Points<float>{data.data(), 3000, 4}, 5, Metric::cosine, {}, {0.95, 10, 4}, {}, 0,
                         blas.sgemm, pool, stop);
  }));
}
