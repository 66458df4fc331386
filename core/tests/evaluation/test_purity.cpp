#include <cmath>
#include <numeric>

#include "evaluation/purity.hpp"
#include "test_case.hpp"
#include "trees.hpp"

namespace {

using Classes = std::vector<std::int32_t>;

double purity(const Tree& tree, const Classes& classes, std::int64_t n_classes) {
  return agglo::dendrogram_purity(tree.parent, tree.size, classes, n_classes);
}

// Computes the purity by its definition, pair by pair.
double plain_purity(const Tree& tree, const Classes& classes) {
  const auto n = static_cast<std::int32_t>(classes.size());
  double sum = 0;
  std::int64_t pairs = 0;
  for (std::int32_t a = 0; a < n; ++a)
    for (std::int32_t b = 0; b < a; ++b) {
      if (classes[a] != classes[b]) continue;
      const std::int32_t node = common_ancestor(tree, a, b);
      std::int64_t same = 0;
      for (std::int32_t leaf = 0; leaf < n; ++leaf)
        same += classes[leaf] == classes[a] && common_ancestor(tree, leaf, node) == node;
      sum += static_cast<double>(same) / tree.size[node];
      ++pairs;
    }
  return sum / static_cast<double>(pairs);
}

TEST_CASE("dendrogram purity is that of the definition, pair by pair") {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Tree tree = make_tree(1 + seed % 40, 2 + seed % 9, seed % 4 == 3, seed);
    const std::int32_t n_classes = 1 + static_cast<std::int32_t>(seed % 6);
    Classes classes(tree.leaves);
    for (auto& c : classes) c = static_cast<std::int32_t>(random() % n_classes);
    const double found = purity(tree, classes, n_classes), expected = plain_purity(tree, classes);
    CHECK(std::isnan(expected) ? std::isnan(found) : std::abs(found - expected) < 1e-12);
    if (tree.leaves > 1) CHECK(purity(tree, Classes(tree.leaves, 0), 1) == 1.0);
    std::iota(classes.begin(), classes.end(), 0);
    CHECK(std::isnan(purity(tree, classes, tree.leaves)));
  }
  const std::int64_t n = 100000;  // a chain with alternating classes
  Classes classes(n);
  for (std::int64_t i = 0; i < n; ++i) classes[i] = static_cast<std::int32_t>(i % 2);
  CHECK(std::abs(purity(make_tree(n, 2, true, 0), classes, 2) - 0.5) < 1e-4);
}

TEST_CASE("pairs of the same class are counted at their lowest common ancestor") {
  std::mt19937 random(11);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Tree tree = make_tree(1 + seed % 30, 2 + seed % 9, seed % 4 == 3, seed);
    Classes classes(tree.leaves);
    for (auto& c : classes) c = static_cast<std::int32_t>(random() % 3);
    std::vector<std::int64_t> expected(tree.parent.size(), 0);
    for (std::int32_t a = 0; a < tree.leaves; ++a)
      for (std::int32_t b = 0; b < a; ++b) expected[common_ancestor(tree, a, b)] += classes[a] == classes[b];
    CHECK(agglo::count_pairs_by_lca(tree.parent, tree.size, classes, 3) == expected);
  }
}

template <class T>
void test_sum_within_clusters(double offset) {
  // Two clusters in the plane: {0, 2, 4} and {1}, {3, 5} in the order given; squares about their means.
  std::vector<T> points;
  for (const double x : {0.0, 10.0, 1.0, 20.0, 5.0, 24.0}) {
    points.push_back(static_cast<T>(x + offset));
    points.push_back(static_cast<T>(offset));
  }
  const std::vector<std::int64_t> order{0, 2, 4, 1, 3, 5}, bounds{0, 3, 4, 6};
  const double sum = agglo::sum_within_clusters<T>(points, 2, order, bounds);
  CHECK(std::abs(sum - (4.0 + 1.0 + 9.0 + 4.0 + 4.0)) < 1e-9);
}

}  // namespace

TEST_CASE("the sum of squares within clusters is exact, also far from the origin") {
  test_sum_within_clusters<float>(0);
  test_sum_within_clusters<double>(0);
  test_sum_within_clusters<double>(1 << 28);  // the one-pass formula loses all digits there
}
