#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "sparse/minhash.hpp"
#include "test_case.hpp"

namespace {

using agglo::MinHashParams;
using agglo::ThreadPool;

// Groups of sets that share most of their members. Some sets are equal, and every 50th set is empty.
struct Made {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::int64_t columns;

  Made(std::int64_t n, std::int64_t groups, std::int64_t size, unsigned seed) : columns(groups * size) {
    std::mt19937 rng(seed);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto group = static_cast<std::int64_t>(rng() % groups);
      for (std::int64_t c = 0; c < size && i % 50 != 49; ++c)
        if (rng() % 4 != 0) indices.push_back(static_cast<std::int32_t>(group * size + c));
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }

  agglo::Sets sets() const { return {indptr, indices, {}, columns}; }
};

// Sets that differ in only one member, so MinHashes cannot separate them.
struct Alike : Made {
  explicit Alike(std::int64_t n) : Made(0, 1, 1, 0) {
    columns = 40 + n;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int32_t c = 0; c < 40; ++c) indices.push_back(c);
      indices.push_back(static_cast<std::int32_t>(40 + i));
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
  }
};

void threads_do_not_matter(const Made& made, std::int64_t k, const MinHashParams& wish) {
  ThreadPool one(1);
  const auto first = minhash_neighbors(made.sets(), k, wish, {0.95, 100, 32}, 7, one);
  for (const int threads : {2, 8}) {
    ThreadPool pool(threads);
    const auto other = minhash_neighbors(made.sets(), k, wish, {0.95, 100, 32}, 7, pool);
    CHECK(first.neighbors.indices == other.neighbors.indices);
    CHECK(first.neighbors.values == other.neighbors.values);
    CHECK(first.recall.value == other.recall.value);
  }
}

void most_neighbours_are_found(const Made& made, std::int64_t k) {
  ThreadPool pool(2);
  const auto exact = jaccard_neighbors(made.sets(), k, pool);
  const auto found = minhash_neighbors(made.sets(), k, {}, {0.9, 256, 128}, 1, pool).neighbors;
  std::int64_t wanted = 0, right = 0;
  for (std::size_t i = 0; i < exact.indices.size() / k; ++i) {
    std::int64_t last = (i + 1) * k - 1;
    while (last >= static_cast<std::int64_t>(i * k) && exact.indices[last] < 0) --last;
    for (std::int64_t s = i * k; s <= last; ++s, ++wanted)
      right += found.indices[s] >= 0 && found.values[s] <= exact.values[last];
  }
  CHECK(right > 0.8 * static_cast<double>(wanted));
}

TEST_CASE("few sets are searched exactly") {
  const Made made(400, 20, 12, 3);
  ThreadPool pool(2);
  const auto exact = jaccard_neighbors(made.sets(), 9, pool);
  const auto found = minhash_neighbors(made.sets(), 9, {}, {0.5, 64, 128}, 0, pool);
  CHECK(found.neighbors.indices == exact.indices && found.neighbors.values == exact.values);
  CHECK(found.recall.value == 1 && found.params.n_bands == 0);
}

void a_report_may_stop_the_search(int threads) {
  const Made made(1500, 20, 30, 2);
  ThreadPool pool(threads);
  CHECK(throws<std::runtime_error>(
      [&] { minhash_neighbors(made.sets(), 5, {}, {0.9, 64, 128}, 0, pool, stop); }));
}

}  // namespace

TEST_CASE("lists and recall do not depend on the number of threads") {
  const Made made(3000, 60, 24, 1);
  threads_do_not_matter(made, 10, {});
  threads_do_not_matter(made, 10, {64, 6});
  threads_do_not_matter(Alike(2000), 5, {100, 3});
}

TEST_CASE("most neighbours are found") {
  most_neighbours_are_found(Made(3000, 60, 24, 1), 10);
  most_neighbours_are_found(Alike(2000), 5);
}

TEST_CASE("an exception of the progress function stops the search") {
  a_report_may_stop_the_search(1);
  a_report_may_stop_the_search(2);
}
