#include <algorithm>
#include <random>
#include <vector>

#include "blas.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/recall.hpp"
#include "test_case.hpp"

namespace {

using agglo::Metric;
using agglo::Neighbors;
using agglo::Points;
using agglo::ThreadPool;

// Returns small integers, so that there are many ties and duplicates.
template <class T>
void the_tree_finds_what_the_exact_search_does(std::int64_t n, std::int64_t d, std::int64_t k, int range) {
  std::mt19937 rng(static_cast<unsigned>(n + d));
  std::vector<T> data(n * d);
  for (T& x : data) x = static_cast<T>(rng() % range);
  const Points<T> points{data.data(), n, d};
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean, Metric::euclidean})
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const Neighbors right = exact_neighbors(points, k, metric, {}, blas, pool);
      const Neighbors found = kdtree_neighbors(points, k, metric, pool);
      CHECK(found.indices == right.indices && found.values == right.values);
      std::vector<std::int32_t> lists = right.indices;
      const auto sample = agglo::random_sample(n, 50, 1);
      CHECK(measure_recall(points, right.indices, k, metric, sample, blas.sgemm, pool).value == 1);
      for (std::int64_t i = 0; i < n; ++i) lists[i * k] = -1;
      const auto less = measure_recall(points, lists, k, metric, sample, blas.sgemm, pool);
      CHECK(std::abs(less.value - 1 + 1 / static_cast<double>(k)) < 1e-12);
    }
}

}  // namespace

TEST_CASE("the k-d tree finds the same neighbours as the exact search") {
  the_tree_finds_what_the_exact_search_does<float>(2, 1, 1, 5);
  the_tree_finds_what_the_exact_search_does<float>(600, 3, 7, 9);
  the_tree_finds_what_the_exact_search_does<double>(500, 2, 20, 1000);
  the_tree_finds_what_the_exact_search_does<std::uint8_t>(400, 5, 3, 250);
}

TEST_CASE("the k-d tree finds the same neighbours as the exact search if all points are equal") {
  the_tree_finds_what_the_exact_search_does<float>(300, 2, 5, 1);
}
