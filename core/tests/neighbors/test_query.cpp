#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "blas.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "test_case.hpp"

namespace {

using agglo::Metric;
using agglo::Points;
using agglo::ThreadPool;

// Returns random integers, so that there are duplicates and ties.
template <class T>
std::vector<T> make_points(std::int64_t count, int most, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = static_cast<T>(static_cast<double>(rng() % most));
  return numbers;
}

// A query must find the same neighbours as if it were added to the points.
template <class T>
void check_points(std::int64_t n, std::int64_t d, std::int64_t k, Metric metric) {
  const auto data = make_points<T>(n * d, 4, 1), query_data = make_points<T>(50 * d, 5, 2);
  const Points<T> points{data.data(), n, d}, queries{query_data.data(), 50, d};
  agglo::Neighbors first;
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    const auto found = agglo::exact_query(queries, points, k, metric, blas.sgemm, pool);
    const auto tree = agglo::kdtree_query(queries, points, k, metric, pool);
    CHECK(found.indices == tree.indices && found.values == tree.values);
    if (threads == 1) first = found;
    CHECK(found.indices == first.indices && found.values == first.values);
  }
  ThreadPool pool(2);
  for (std::int64_t i = 0; i < queries.n; ++i) {
    std::vector<T> both(data);
    both.insert(both.end(), queries.row(i), queries.row(i) + d);
    const auto lists = agglo::exact_neighbors(Points<T>{both.data(), n + 1, d}, k, metric, {}, blas, pool);
    for (std::int64_t s = 0; s < k; ++s) {
      CHECK(lists.indices[n * k + s] == first.indices[i * k + s]);
      CHECK(lists.values[n * k + s] == first.values[i * k + s]);
    }
  }
  // With a single inverted list, all points are compared.
  const agglo::IvfIndex one(points, k, metric, {n + 4 * (k + 1), 0, 0, 0}, 0.9, {}, {}, 7, blas.sgemm, pool);
  CHECK(one.query(queries, pool).values == first.values);
}

void check_ivf_index(Metric metric) {
  const std::int64_t n = 2000, d = 5, k = 6;
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  std::vector<float> data(n * d), query_data(300 * d);
  for (float& x : data) x = normal(rng);
  for (float& x : query_data) x = normal(rng);
  const Points<float> points{data.data(), n, d}, queries{query_data.data(), 300, d};
  ThreadPool pool(3), alone(1);
  const agglo::IvfIndex index(points, k, metric, {50, 0, 0, 0}, 0.95, {}, {}, 7, blas.sgemm, pool);
  const auto found = index.query(queries, pool), same = index.query(queries, alone);
  CHECK(found.indices == same.indices && found.values == same.values);
  // Tests known lists, and known lists that are too small, so that new lists are built.
  const auto known =
      agglo::ivf_neighbors(points, k, metric, {50, 0, 0, 0}, {0.95, 10, 4}, {}, 7, blas.sgemm, pool);
  std::vector<std::int32_t> tiny(n, 0);
  tiny[0] = 1;
  for (const auto& cells : {known.lists, tiny}) {
    const agglo::IvfIndex other(points, k, metric, {50, 0, 0, 0}, 0.95, cells, {}, 7, blas.sgemm, pool);
    const auto lists = other.query(queries, pool);
    CHECK(std::all_of(lists.indices.begin(), lists.indices.end(), [](std::int32_t j) { return j >= 0; }));
    CHECK(cells == known.lists || lists.values == found.values);
  }
  const auto true_lists = agglo::exact_query(queries, points, k, metric, blas.sgemm, pool);
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < 300; ++i)
    for (std::int64_t s = i * k; s < (i + 1) * k; ++s) {
      const auto own = true_lists.indices.begin() + i * k;
      right += std::find(own, own + k, found.indices[s]) != own + k;
    }
  CHECK(right > 0.9 * 300 * k);
}

TEST_CASE("queries of sparse rows, sets and bits find their neighbours") {
  // Rows {0, 1}, {}, {1}, {2}, and the queries {1}, {} and {3}.
  const std::vector<std::int64_t> indptr{0, 2, 2, 3, 4, 5, 5, 6};
  const std::vector<std::int32_t> indices{0, 1, 1, 2, 1, 3};
  const std::vector<float> values{3, 4, 2, 1, 2, 1};
  ThreadPool pool(2);
  const auto found =
      agglo::exact_query(agglo::SparseRows<float>{indptr, indices, values, 4}, 4, 2, Metric::cosine, pool);
  CHECK((found.indices == std::vector<std::int32_t>{2, 0, -1, -1, -1, -1}));
  CHECK(found.values[0] == 1 && found.values[1] == 0.8f);
  const auto sets = agglo::jaccard_query({indptr, indices, {}, 4}, 4, 2, pool);
  CHECK((sets.indices == std::vector<std::int32_t>{2, 0, 1, -1, -1, -1}));
  CHECK(sets.values[0] == 0 && sets.values[1] == 0.5f && sets.values[2] == 0);
  const std::vector<std::uint64_t> words{0b1100, 0b0111, 0b1111, 0b1101};
  const auto bits = agglo::hamming_query({words, 4, 1, 4}, 2, 2, pool);
  CHECK((bits.indices == std::vector<std::int32_t>{1, 0, 0, 1}));
  CHECK((bits.values == std::vector<float>{0.25f, 0.5f, 0.25f, 0.5f}));
}

}  // namespace

TEST_CASE("a query finds the same neighbours as if it were added to the points") {
  check_points<float>(200, 3, 5, Metric::sqeuclidean);
  check_points<double>(100, 4, 7, Metric::cosine);
  check_points<std::int8_t>(1100, 2, 3, Metric::dot);
}

TEST_CASE("an IVF index finds nine of ten neighbours, also with lists of an earlier search") {
  check_ivf_index(Metric::euclidean);
  check_ivf_index(Metric::dot);
}

TEST_CASE("a query cannot have more neighbours than there are points") {
  const std::vector<float> few{1, 2, 3};
  CHECK(throws<std::invalid_argument>([&] {
    ThreadPool pool(1);
    const Points<float> points{few.data(), 3, 1};
    agglo::exact_query(points, points, 4, Metric::dot, blas.sgemm, pool);
  }));
}
