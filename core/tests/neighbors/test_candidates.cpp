#include <algorithm>
#include <cstdint>
#include <vector>

#include "neighbors/candidates.hpp"
#include "points/space.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "test_case.hpp"

namespace {

using agglo::Kind;
using agglo::ThreadPool;

TEST_CASE("each row keeps its nearest candidates, without absent ones") {
  const std::vector<std::int64_t> indptr{0, 5, 5, 7};
  const std::vector<std::int32_t> targets{2, 1, -1, 2, 0, 0, 1};
  const std::vector<float> weights{3, 1, 9, 2, 0, 5, 5};
  const auto equal = [](std::int32_t, std::int32_t) { return 0.0; };
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    const auto near = agglo::select_nearest({indptr, targets, weights}, 2, Kind::distance, equal, pool);
    CHECK((near.indices == std::vector<std::int32_t>{1, 2, -1, -1, 0, 1}));
    CHECK((near.values == std::vector<float>{1, 2, 0, 0, 5, 5}));
    const auto alike = agglo::select_nearest({indptr, targets, weights}, 1, Kind::similarity, equal, pool);
    CHECK((alike.indices == std::vector<std::int32_t>{2, -1, 0}) && alike.values[0] == 3);
  }
}

// Row 0 has one closer candidate, three candidates with equal weights and a farther candidate.
TEST_CASE("only a tie at the end of the list needs exact similarities") {
  const std::vector<std::int64_t> indptr{0, 6, 6, 6, 6, 6, 6};
  const std::vector<std::int32_t> targets{5, 3, 2, 1, 4, 2};
  const std::vector<float> weights{7, 5, 5, 1, 5, 5};
  const std::vector<double> similarity{0, 0, 0.25, 0.5, 0.25, 0};
  ThreadPool pool(1);
  for (const std::int64_t k : {1, 2, 3, 4, 5}) {
    const auto found = agglo::select_nearest(
        {indptr, targets, weights}, k, Kind::distance,
        [&](std::int32_t i, std::int32_t j) {
          CHECK(i == 0 && j >= 2 && j <= 4);
          return similarity[j];
        },
        pool);
    // Only a tie at the end of the list requires exact similarities.
    const std::vector<std::int32_t> expected =
        k < 4 ? std::vector<std::int32_t>{1, 3, 2, 4, 5} : std::vector<std::int32_t>{1, 2, 3, 4, 5};
    CHECK(std::equal(expected.begin(), expected.begin() + k, found.indices.begin()));
  }
}

// Exact similarities give the order of the searches, which distinguishes more values than float32.
TEST_CASE("exact similarities distinguish more values than float32") {
  const std::vector<std::int64_t> indptr{0, 3, 6, 9};
  const std::vector<std::int32_t> columns{0, 8, 9, 0, 8, 9, 0, 8, 11};
  const std::vector<double> numbers{1, 2, 3, 1, 2, 3 + 1e-12, 1, 2, 3};
  const agglo::SparseRows<double> rows{indptr, columns, numbers, 12};
  std::vector<double> dense(3 * 12, 0.0);
  for (std::size_t e = 0; e < columns.size(); ++e) dense[e / 3 * 12 + columns[e]] = numbers[e];
  ThreadPool pool(1);
  for (const auto metric : {agglo::Metric::dot, agglo::Metric::cosine}) {
    const agglo::Space space(agglo::Points<double>{dense.data(), 3, 12}, metric, pool);
    const auto similarity = agglo::pair_similarity(rows, metric);
    for (const std::int32_t i : {0, 1, 2})
      for (const std::int32_t j : {0, 1, 2}) CHECK(similarity(i, j) == space.similarity(i, j));
  }
  CHECK(agglo::jaccard_similarity({indptr, columns, {}, 12})(0, 1) == 0);
  CHECK(agglo::jaccard_similarity({indptr, columns, {}, 12})(0, 2) == -0.5);

  // Two different counts of differing bits, whose shares are equal in float32.
  const std::int64_t width = (std::int64_t{1} << 26) / 64;
  std::vector<std::uint64_t> words(3 * width, 0);
  std::fill(words.begin() + width, words.end(), ~std::uint64_t{0});
  words[width] = ~std::uint64_t{1};
  const auto differing = agglo::hamming_similarity({words, 3, width, width * 64});
  CHECK(differing(0, 1) == 1 - static_cast<double>(width * 64) && differing(0, 2) == differing(0, 1) - 1);
  const auto lists = agglo::hamming_neighbors({words, 3, width, width * 64}, 2, pool);
  CHECK(lists.values[0] == lists.values[1] && lists.indices[0] == 1);
}

}  // namespace
