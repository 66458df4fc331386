#include <cmath>
#include <limits>

#include "simd/center_products.hpp"
#include "test_case.hpp"
#include "tree/node_costs.hpp"
#include "trees.hpp"

namespace {

using agglo::CenterKind;
using agglo::Half;
using agglo::NodeCosts;

template <class T>
NodeCosts costs(const std::vector<T>& X, std::int64_t d, const Tree& tree, CenterKind centers, int threads) {
  agglo::ThreadPool pool(threads);
  return agglo::compute_node_costs(agglo::Points<T>{X.data(), tree.leaves, d}, tree.parent, tree.size,
                                   centers, pool);
}

// Computes the cost of a node by its definition. The center is the mean, or the best point of the node.
template <class T>
double plain(const std::vector<T>& X, std::int64_t d, const std::vector<std::int32_t>& leaves,
             CenterKind centers) {
  std::vector<double> mean(d, 0.0);
  for (const auto i : leaves)
    for (std::int64_t j = 0; j < d; ++j) mean[j] += X[i * d + j] / static_cast<double>(leaves.size());
  const auto sum = [&](const auto& center) {
    double squares = 0;
    for (const auto i : leaves)
      for (std::int64_t j = 0; j < d; ++j) {
        const double difference = X[i * d + j] - center(j);
        squares += difference * difference;
      }
    return squares;
  };
  if (centers == CenterKind::means) return sum([&](std::int64_t j) { return mean[j]; });
  double best = std::numeric_limits<double>::infinity();
  for (const auto c : leaves)
    best = std::min(best, sum([&](std::int64_t j) { return static_cast<double>(X[c * d + j]); }));
  return best;
}

template <class T, class Draw>
void test_small_trees(const Draw& draw) {
  std::mt19937 random(3);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Tree tree = make_tree(1 + seed, 2 + seed % 7, seed % 5 == 4, seed);
    const std::int64_t d = 1 + seed % 11;
    std::vector<T> X(tree.leaves * d);
    for (T& x : X) x = draw(random);
    const agglo::Descendants below = agglo::index_descendants(tree.parent, tree.size, tree.leaves);
    for (const CenterKind centers : {CenterKind::means, CenterKind::points}) {
      const NodeCosts found = costs(X, d, tree, centers, 2);
      for (std::size_t v = 0; v < tree.parent.size(); ++v) {
        const auto first = below.order.begin() + below.start[v];
        const std::vector<std::int32_t> leaves(first, first + tree.size[v]);
        CHECK(std::abs(found.costs[v] - plain(X, d, leaves, centers)) < 1e-9);
        if (centers == CenterKind::points)
          CHECK(std::find(leaves.begin(), leaves.end(), found.centers[v]) != leaves.end());
      }
    }
  }
}

// Tests a tree that is large enough for several tasks, and for heaps that are only partly read.
void test_threads(bool deep) {
  const std::int64_t n = 20000, d = 3;
  const Tree tree = deep ? make_tree(n, 2, true, 0) : make_tree(n, 9, false, 5);
  std::mt19937 random(9);
  std::vector<float> X(n * d);
  for (float& x : X) x = static_cast<float>(random() % 100000) / 1000;
  for (const CenterKind centers : {CenterKind::means, CenterKind::points}) {
    const NodeCosts one = costs(X, d, tree, centers, 1);
    const NodeCosts three = costs(X, d, tree, centers, 3);
    CHECK(one.costs == three.costs && one.centers == three.centers);
  }
}

TEST_CASE("every finite float16 converts exactly") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) == 31) continue;  // not finite
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const double expected = bits >> 15 ? -magnitude : magnitude;
    CHECK(static_cast<double>(Half{static_cast<std::uint16_t>(bits)}) == expected);
  }
}

}  // namespace

TEST_CASE("the costs of nodes are those of the definition") {
  test_small_trees<float>([](auto& random) { return static_cast<float>(random() % 5); });
  test_small_trees<double>([](auto& random) { return static_cast<double>(random() % 1000) / 1000; });
  test_small_trees<Half>(
      [](auto& random) { return Half{static_cast<std::uint16_t>(0x3c00 + random() % 512)}; });
}

TEST_CASE("the costs of nodes do not depend on the number of threads") {
  test_threads(false);
  test_threads(true);
}
