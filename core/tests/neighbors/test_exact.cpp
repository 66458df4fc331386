#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "neighbors/exact.hpp"
#include "simd/dispatch.hpp"
#include "test_case.hpp"

namespace {

using agglo::Metric;
using agglo::Neighbors;
using agglo::Points;
using agglo::ThreadPool;

// Returns small integers, so that every sum is exact and many values tie. Every ninth point is a duplicate.
template <class T>
std::vector<T> make_points(std::int64_t n, std::int64_t d, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_int_distribution<int> number(-4, 4);
  std::vector<T> data(n * d);
  for (T& x : data) x = static_cast<T>(number(rng));
  for (std::int64_t i = 9; i < n; i += 9)
    std::copy_n(data.begin() + (rng() % i) * d, d, data.begin() + i * d);
  return data;
}

// Brute force: all other points, sorted by (value, index).
template <class T>
std::vector<std::int32_t> by_definition(const Points<T>& points, std::int64_t k, bool similarity) {
  std::vector<std::int32_t> lists;
  for (std::int64_t i = 0; i < points.n; ++i) {
    std::vector<std::pair<double, std::int32_t>> others;
    for (std::int64_t j = 0; j < points.n; ++j) {
      if (j == i) continue;
      double value = 0;
      for (std::int64_t c = 0; c < points.d; ++c) {
        const double x = points.row(i)[c], y = points.row(j)[c];
        value += similarity ? -x * y : (x - y) * (x - y);
      }
      others.push_back({value, static_cast<std::int32_t>(j)});
    }
    std::partial_sort(others.begin(), others.begin() + k, others.end());
    for (std::int64_t s = 0; s < k; ++s) lists.push_back(others[s].second);
  }
  return lists;
}

// The first m unit vectors: a basis that is not optimal, but has no rounding errors.
std::vector<double> unit_vectors(std::int64_t m, std::int64_t d) {
  std::vector<double> basis(m * d, 0.0);
  for (std::int64_t i = 0; i < m; ++i) basis[i * d + i] = 1;
  return basis;
}

template <class T>
void lists_are_those_of_the_definition(std::int64_t n, std::int64_t d, std::int64_t k) {
  const std::vector<T> data = make_points<T>(n, d, static_cast<unsigned>(n + d));
  const Points<T> points{data.data(), n, d};
  for (const Metric metric : {Metric::dot, Metric::sqeuclidean}) {
    const auto expected = by_definition(points, k, is_similarity(metric));
    for (const agglo::Simd level : agglo::available_levels())
      for (const int threads : {1, 2, 8})
        for (const std::int64_t width : {std::int64_t{0}, std::min<std::int64_t>(d / 2, 4)}) {
          agglo::set_simd_level(level);
          ThreadPool pool(threads);
          const Neighbors found = exact_neighbors(points, k, metric, unit_vectors(width, d), blas, pool);
          CHECK(found.indices == expected);
        }
  }
}

TEST_CASE("lists and values of all metrics are the same for any number of threads") {
  const std::vector<float> data = make_points<float>(1100, 6, 1);
  const Points<float> points{data.data(), 1100, 6};
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean, Metric::euclidean}) {
    ThreadPool one(1), many(8);
    const Neighbors a = exact_neighbors(points, 10, metric, {}, blas, one);
    const Neighbors b = exact_neighbors(points, 10, metric, unit_vectors(3, 6), blas, many);
    CHECK(a.indices == b.indices && a.values == b.values);
    const auto pairs = pairwise_values(points, metric, many);
    CHECK(pairs == pairwise_values(points, metric, one));
    for (std::int64_t i = 0; i < points.n; ++i)
      for (std::int64_t s = i * 10; s < (i + 1) * 10; ++s) {
        const std::int64_t j = a.indices[s];
        CHECK(pairs[i * (points.n - 1) + j - (j > i)] == a.values[s]);
      }
  }
}

// Compact number types must give the same result as widened numbers, also with an odd number of columns.
template <class T>
void compact_numbers_are_as_wide_ones(T (*number)(std::uint32_t)) {
  const std::int64_t n = 300, d = 43, k = 7;
  std::mt19937 rng(3);
  std::vector<T> data(n * d);
  for (T& x : data) x = number(static_cast<std::uint32_t>(rng()));
  const std::vector<float> wide(data.begin(), data.end());
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean, Metric::euclidean}) {
    ThreadPool pool(2);
    const auto basis = unit_vectors(4, d);
    const Neighbors a = exact_neighbors(Points<T>{data.data(), n, d}, k, metric, basis, blas, pool);
    const Neighbors b = exact_neighbors(Points<float>{wide.data(), n, d}, k, metric, basis, blas, pool);
    CHECK(a.indices == b.indices && a.values == b.values);
  }
}

// Rows with outliers have coarse codes, and a common offset must not make them coarser. Random points do not
// tie, so that plain C++ is the reference.
TEST_CASE("the bounds of int8 codes lose no neighbour") {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  const std::int64_t n = 2500, d = 37, k = 9;
  std::vector<float> data(n * d);
  for (std::int64_t i = 0; i < n; ++i) {
    const float length = std::exp(normal(rng));
    for (std::int64_t j = 0; j < d; ++j) {
      const float outlier = rng() % 50 == 0 ? 30.0f : 1.0f;
      data[i * d + j] = length * (outlier * normal(rng) + (j < 5 ? 8.0f : 0.0f));
    }
  }
  const Points<float> points{data.data(), n, d};
  ThreadPool pool(2);
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean, Metric::euclidean}) {
    agglo::set_simd_level(agglo::Simd::plain);
    const Neighbors expected = exact_neighbors(points, k, metric, {}, blas, pool);
    for (const agglo::Simd level : agglo::available_levels()) {
      agglo::set_simd_level(level);
      const Neighbors found = exact_neighbors(points, k, metric, {}, blas, pool);
      CHECK(found.indices == expected.indices && found.values == expected.values);
    }
  }
}

TEST_CASE("equal points have the smallest ids as neighbours") {
  const std::vector<float> data(300 * 5, 2.5f);
  ThreadPool pool(2);
  const Neighbors found =
      exact_neighbors(Points<float>{data.data(), 300, 5}, 4, Metric::sqeuclidean, {}, blas, pool);
  for (std::int64_t i = 0; i < 300; ++i)
    for (std::int64_t s = 0; s < 4; ++s) {
      CHECK(found.indices[i * 4 + s] == s + (s >= i ? 1 : 0));
      CHECK(found.values[i * 4 + s] == 0);
    }
}

void a_report_may_stop_the_search(int threads) {
  const std::vector<float> data = make_points<float>(3000, 4, 2);
  ThreadPool pool(threads);
  CHECK(throws<std::runtime_error>(
      [&] { exact_neighbors(Points<float>{data.data(), 3000, 4}, 5, Metric::dot, {}, blas, pool, stop); }));
}

}  // namespace

TEST_CASE("the neighbour lists are those of the definition") {
  lists_are_those_of_the_definition<float>(2, 1, 1);
  lists_are_those_of_the_definition<float>(3, 2, 2);
  lists_are_those_of_the_definition<float>(700, 4, 12);
  lists_are_those_of_the_definition<float>(1300, 8, 25);
  lists_are_those_of_the_definition<double>(1300, 3, 5);
  lists_are_those_of_the_definition<float>(66, 8300, 50);  // leaves as large as blocks
  lists_are_those_of_the_definition<std::int8_t>(700, 9, 12);
}

TEST_CASE("compact number types give the same lists as widened numbers") {
  compact_numbers_are_as_wide_ones<std::int8_t>(
      [](std::uint32_t bits) { return static_cast<std::int8_t>(bits); });
  compact_numbers_are_as_wide_ones<std::uint8_t>(
      [](std::uint32_t bits) { return static_cast<std::uint8_t>(bits); });
  compact_numbers_are_as_wide_ones<agglo::Half>([](std::uint32_t bits) {
    return agglo::Half{static_cast<std::uint16_t>((bits & 0x8000u) | (0x3000u + bits % 0x1000u))};
  });
}

TEST_CASE("an exception of the progress function stops the search") {
  a_report_may_stop_the_search(1);
  a_report_may_stop_the_search(2);
}
