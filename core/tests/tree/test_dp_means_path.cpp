#include <cmath>
#include <map>

#include "test_case.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/exact_k.hpp"
#include "trees.hpp"

namespace {

// Returns random node costs that grow from the leaves to the root.
// They are multiples of 1/4, so sums are exact. Some costs are equal or 0.
std::vector<double> random_costs(const Tree& tree, unsigned seed, unsigned kinds) {
  std::mt19937 random(seed);
  std::vector<double> costs(tree.parent.size(), 0.0);
  for (std::size_t v = 0; v + 1 < costs.size(); ++v) {
    if (v >= static_cast<std::size_t>(tree.leaves)) costs[v] += static_cast<double>(random() % kinds) / 4;
    costs[tree.parent[v]] += costs[v];
  }
  return costs;
}

// Returns the minimum total cost of a partition of each node, by number of clusters.
std::vector<std::map<std::int64_t, double>> plain(const Tree& tree, const std::vector<double>& costs) {
  std::vector<std::map<std::int64_t, double>> best(costs.size());
  for (std::size_t v = 0; v < costs.size(); ++v) {
    const auto [own, added] = best[v].try_emplace(1, costs[v]);
    if (!added) own->second = std::min(own->second, costs[v]);
    if (v + 1 == costs.size()) break;
    auto& above = best[tree.parent[v]];
    if (above.empty()) above[0] = 0;
    std::map<std::int64_t, double> sums;
    for (const auto& [i, a] : above)
      for (const auto& [j, b] : best[v]) {
        const auto [at, first] = sums.try_emplace(i + j, a + b);
        if (!first) at->second = std::min(at->second, a + b);
      }
    above = sums;
  }
  return best;
}

double total(const std::vector<std::uint8_t>& merged, const std::vector<double>& costs) {
  double sum = 0;
  for (std::size_t v = 0; v < costs.size(); ++v) sum += merged[v] ? costs[v] : 0;
  return sum;
}

void test_against_all_partitions(const Tree& tree, const std::vector<double>& costs) {
  const auto best = plain(tree, costs).back();
  const agglo::PricePath path = agglo::compute_price_path(tree.parent, costs, tree.leaves);
  for (std::size_t i = 0; i < path.lams.size(); ++i) {
    const double next = i + 1 < path.lams.size() ? path.lams[i + 1] : path.lams[i] + 5;
    for (const double lam : {path.lams[i], (path.lams[i] + next) / 2}) {
      double least = INFINITY;
      for (const auto& [k, cost] : best) least = std::min(least, cost + lam * static_cast<double>(k));
      CHECK(std::abs(path.costs[i] + lam * static_cast<double>(path.clusters[i]) - least) < 1e-9);
    }
  }
  CHECK(path.clusters.back() == 1);

  std::vector<std::int64_t> numbers;
  for (const auto& run : agglo::find_possible_counts(tree.parent, tree.leaves))
    for (std::int64_t k = run.first; k <= run.last; ++k) numbers.push_back(k);
  CHECK(numbers.size() == best.size());
  std::size_t at = 0;
  for (const auto& [k, cost] : best) {
    CHECK(numbers[at++] == k);
    std::size_t piece = 0;
    while (path.clusters[piece] > k) ++piece;
    const auto merged = agglo::select_k_nodes(tree.parent, costs, tree.leaves, k, path.lams[piece]);
    CHECK(std::count(merged.begin(), merged.end(), 1) == k);
    CHECK(std::abs(total(merged, costs) - cost) < 1e-9);
  }
}

TEST_CASE("the cheapest nodes cost at most the total of their parts") {
  const std::vector<std::int32_t> parent{4, 4, 5, 5, 6, 6, -1};
  const std::vector<double> costs{1, 1, 1, 1, 2, 3, 5};
  // A node is merged if its cost is at most the total cost of its parts.
  CHECK((agglo::select_cheapest_nodes(parent, costs) == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 0}));
  const std::vector<double> gains{0, 0, 0, 0, -1, 2, -1};
  CHECK((agglo::select_cheapest_nodes(parent, gains) == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1}));
  const std::vector<std::int64_t> ones(7, 1);
  CHECK(
      (agglo::sum_descendants<std::int64_t>(parent, ones) == std::vector<std::int64_t>{1, 1, 1, 1, 3, 3, 7}));
}

TEST_CASE("if every node has three children, no even number of clusters is possible") {
  Tree tree;
  tree.leaves = 2187;
  std::vector<std::int32_t> level;
  for (std::int32_t i = 0; i < tree.leaves; ++i) level.push_back(i);
  for (auto next = static_cast<std::int32_t>(tree.leaves); level.size() > 1;) {
    std::vector<std::int32_t> above;
    for (std::size_t i = 0; i < level.size(); i += 3, ++next) {
      tree.parent.insert(tree.parent.end(), 3, next);
      above.push_back(next);
    }
    level = above;
  }
  tree.parent.push_back(-1);
  const auto runs = agglo::find_possible_counts(tree.parent, tree.leaves);
  CHECK(runs.size() == 1094);
  for (std::size_t i = 0; i < runs.size(); ++i)
    CHECK(runs[i].first == runs[i].last && runs[i].first == 2 * static_cast<std::int64_t>(i) + 1);
}

TEST_CASE("a chain of 100,000 nodes needs no recursion") {
  const std::int64_t n = 100000;
  const Tree chain = make_tree(n, 2, true, 0);
  const std::vector<double> costs = random_costs(chain, 1, 9);
  const agglo::PricePath path = agglo::compute_price_path(chain.parent, costs, n);
  CHECK(path.clusters.front() <= n && path.clusters.back() == 1);
  const auto runs = agglo::find_possible_counts(chain.parent, n);
  CHECK(runs.size() == 1 && runs[0].first == 1 && runs[0].last == n);
}

}  // namespace

TEST_CASE("the path and the cuts with exactly k clusters are optimal among all partitions") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Tree tree = make_tree(1 + seed % 40, 2 + seed % 7, seed % 5 == 4, seed);
    test_against_all_partitions(tree, random_costs(tree, seed, 2 + seed % 9 * (seed % 9)));
  }
}
