#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "test_case.hpp"

namespace {

using agglo::Metric;
using agglo::Neighbors;
using agglo::ThreadPool;

// Random rows of small integers, so that every sum is exact and many values tie.
// Columns differ in frequency. Every ninth row is a duplicate.
struct Made {
  std::int64_t n, d;
  std::vector<int> table;
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values;

  Made(std::int64_t rows, std::int64_t columns, unsigned seed)
      : n(rows), d(columns), table(rows * columns, 0) {
    std::mt19937 rng(seed);
    for (std::int64_t i = 0; i < n; ++i) {
      int* row = table.data() + i * d;
      if (i % 9 == 8) {
        std::copy_n(table.data() + static_cast<std::int64_t>(rng() % i) * d, d, row);
      } else {
        for (std::int64_t j = 0; j < d; ++j)
          if (rng() % (j + 2) == 0) row[j] = static_cast<int>(rng() % 7) - 2;
      }
      for (std::int64_t j = 0; j < d; ++j)
        if (row[j] != 0) {
          indices.push_back(static_cast<std::int32_t>(j));
          values.push_back(static_cast<float>(row[j]));
        }
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }

  agglo::SparseRows<float> rows() const { return {indptr, indices, values, d}; }
  agglo::Sets sets() const { return {indptr, indices, {}, d}; }

  // Returns the sum of term(value of row i, value of row j) over the columns of row i.
  template <class Term>
  double sum(std::int64_t i, std::int64_t j, const Term& term) const {
    double all = 0;
    for (std::int64_t e = indptr[i]; e < indptr[i + 1]; ++e)
      all += term(table[i * d + indices[e]], table[j * d + indices[e]]);
    return all;
  }
  double product(std::int64_t i, std::int64_t j) const {
    return sum(i, j, [](int a, int b) { return a * b; });
  }
  double jaccard(std::int64_t i, std::int64_t j) const {
    const double both = sum(i, j, [](int, int b) { return b != 0; });
    const double any = static_cast<double>(rows().size(i) + rows().size(j)) - both;
    return any > 0 ? (any - both) / any : 0;
  }
};

// Brute force: the first k other rows by (cost, index). Only rows with a cost below `end` count.
template <class Cost>
std::vector<std::int32_t> by_definition(std::int64_t n, std::int64_t k, double end, const Cost& cost) {
  std::vector<std::int32_t> lists;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::pair<double, std::int32_t>> others;
    for (std::int64_t j = 0; j < n; ++j) {
      const double it = j == i ? end : cost(i, j);
      if (it < end) others.push_back({it, static_cast<std::int32_t>(j)});
    }
    std::sort(others.begin(), others.end());
    for (std::int64_t s = 0; s < k; ++s)
      lists.push_back(s < static_cast<std::int64_t>(others.size()) ? others[s].second : -1);
  }
  return lists;
}

void lists_are_those_of_the_definition(std::int64_t n, std::int64_t d, std::int64_t k) {
  const Made made(n, d, static_cast<unsigned>(n + d));
  const auto products =
      by_definition(n, k, 0, [&](std::int64_t i, std::int64_t j) { return -made.product(i, j); });
  const auto overlaps =
      by_definition(n, k, 1, [&](std::int64_t i, std::int64_t j) { return made.jaccard(i, j); });
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    CHECK(exact_neighbors(made.rows(), k, Metric::dot, pool).indices == products);
    const Neighbors sets = jaccard_neighbors(made.sets(), k, pool);
    CHECK(sets.indices == overlaps);
    for (std::int64_t s = 0; s < n * k; ++s)
      if (overlaps[s] >= 0) CHECK(sets.values[s] == static_cast<float>(made.jaccard(s / k, overlaps[s])));
  }
}

TEST_CASE("the values of neighbours are those of all pairs") {
  const Made made(300, 40, 3);
  ThreadPool one(1), many(8);
  for (const Metric metric : {Metric::dot, Metric::cosine}) {
    const Neighbors a = exact_neighbors(made.rows(), 10, metric, one),
                    b = exact_neighbors(made.rows(), 10, metric, many);
    CHECK(a.indices == b.indices && a.values == b.values);
    const auto pairs = pairwise_values(made.rows(), metric, many);
    for (std::int64_t s = 0; s < 3000; ++s) {
      const std::int64_t i = s / 10, j = a.indices[s];
      if (j >= 0) CHECK(pairs[i * 299 + j - (j > i)] == a.values[s]);
    }
  }
}

void bits_are_compared(std::int64_t n, std::int64_t width, std::int64_t k) {
  std::mt19937_64 rng(7);
  std::vector<std::uint64_t> words(n * width);
  for (auto& word : words) word = rng() & rng() & rng();
  const agglo::BitRows rows{words, n, width, 64 * width};
  const auto differing = [&](std::int64_t i, std::int64_t j) {
    int sum = 0;
    for (std::int64_t c = 0; c < width; ++c)
      sum += std::popcount(words[i * width + c] ^ words[j * width + c]);
    return static_cast<double>(sum);
  };
  const auto expected = by_definition(n, k, 1e9, differing);
  for (const int threads : {1, 8}) {
    ThreadPool pool(threads);
    CHECK(hamming_neighbors(rows, k, pool).indices == expected);
    CHECK(pairwise_hamming(rows, pool)[0] ==
          static_cast<float>(differing(0, 1) / static_cast<double>(64 * width)));
  }
}

void a_report_may_stop_the_search(int threads) {
  const Made made(500, 30, 2);
  ThreadPool pool(threads);
  CHECK(throws<std::runtime_error>([&] { exact_neighbors(made.rows(), 5, Metric::cosine, pool, stop); }));
}

}  // namespace

TEST_CASE("the neighbour lists are those of the definition") {
  lists_are_those_of_the_definition(2, 1, 1);
  lists_are_those_of_the_definition(60, 5, 59);
  lists_are_those_of_the_definition(400, 60, 12);
  lists_are_those_of_the_definition(900, 300, 7);
}

TEST_CASE("Hamming neighbours of bits are those of the definition") {
  bits_are_compared(150, 1, 6);
  bits_are_compared(150, 2, 149);
  bits_are_compared(200, 5, 10);
}

TEST_CASE("an exception of the progress function stops the search") {
  a_report_may_stop_the_search(1);
  a_report_may_stop_the_search(2);
}
