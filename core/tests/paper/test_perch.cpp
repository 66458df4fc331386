#include <limits>
#include <random>
#include <stdexcept>

#include "paper/perch.hpp"
#include "simd/dot.hpp"
#include "test_case.hpp"

using namespace agglo;
using namespace agglo::paper;

namespace {

struct Data {
  std::vector<float> numbers;
  std::int64_t n, d;

  Points<float> points() const { return {numbers.data(), n, d}; }
};

// Returns points of four distant classes, with duplicates and ties. Point i has class i % 4.
Data random_data(std::int64_t n, std::int64_t d, unsigned seed) {
  std::mt19937 random(seed);
  Data data{{}, n, d};
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < d; ++j)
      data.numbers.push_back(static_cast<float>(random() % 5) + (j == 0 ? 100.0f * (i % 4) : 0.0f));
  return data;
}

std::vector<std::int32_t> nearest_before(const Data& data) {
  std::vector<std::int32_t> nearest(data.n, -1);
  for (std::int32_t i = 1; i < data.n; ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t j = 0; j < i; ++j) {
      const double square = squared_distance(data.points().row(i), data.points().row(j), data.d);
      if (square < least) {
        least = square;
        nearest[i] = j;
      }
    }
  }
  return nearest;
}

// Checks that children come before parents, and that the root is last.
// In a binary tree, also checks that every class is a node.
void check_tree(const std::vector<std::int32_t>& parent, std::int64_t n, bool pairs) {
  const auto nodes = static_cast<std::int64_t>(parent.size());
  std::vector<std::vector<int>> classes(nodes, std::vector<int>(4, 0));
  std::vector<int> children(nodes, 0);
  for (std::int64_t i = 0; i < n; ++i) ++classes[i][i % 4];
  for (std::int64_t v = 0; v + 1 < nodes; ++v) {
    CHECK(parent[v] > v && parent[v] >= n && parent[v] < nodes);
    ++children[parent[v]];
    for (int c = 0; c < 4; ++c) classes[parent[v]][c] += classes[v][c];
  }
  CHECK(parent.back() == -1);
  if (pairs) CHECK(nodes == 2 * n - 1);
  for (std::int64_t v = n; v < nodes; ++v) CHECK(pairs ? children[v] == 2 : children[v] >= 2);
  if (!pairs) return;
  for (int c = 0; c < 4; ++c) {
    bool found = classes.back()[c] == 0;
    for (const auto& counts : classes)
      found |= counts[c] == classes.back()[c] && counts[0] + counts[1] + counts[2] + counts[3] == counts[c];
    CHECK(found);
  }
}

void test_trees(std::int64_t n, std::int64_t d, unsigned seed) {
  const Data data = random_data(n, d, seed);
  const std::vector<std::int32_t> nearest = nearest_before(data);
  for (const PerchSearch search : {PerchSearch::given, PerchSearch::boxes, PerchSearch::beam})
    for (const bool exact : {true, false})
      for (const bool balance : {true, false}) {
        const bool sure = exact && search != PerchSearch::beam;
        const auto whole = build_perch_tree(data.points(), nearest, {search, 3, exact, balance, 0});
        if (sure) check_tree(whole, n, true);
        check_tree(build_perch_tree(data.points(), nearest, {search, 3, exact, balance, 5}), n, false);
      }
}

TEST_CASE("an exception of the progress function stops Perch") {
  const Data data = random_data(100, 2, 1);
  CHECK(throws<std::runtime_error>([&] {
    build_perch_tree(data.points(), nearest_before(data), {PerchSearch::given, 1, true, true, 0}, stop);
  }));
}

}  // namespace

TEST_CASE("Perch builds trees in which every separated class is a node") {
  for (const std::int64_t n : {1, 2, 3, 50, 400})
    for (const std::int64_t d : {1, 3}) test_trees(n, d, static_cast<unsigned>(n + d));
}
