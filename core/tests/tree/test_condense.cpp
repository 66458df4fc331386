#include <cmath>
#include <limits>

#include "test_case.hpp"
#include "tree/condense.hpp"
#include "trees.hpp"

namespace {

double cost_of(const Tree& tree, const agglo::CondenseCosts& costs, const std::vector<std::uint8_t>& kept) {
  double cost = 0;
  for (std::size_t v = tree.leaves; v + 1 < tree.parent.size(); ++v) {
    std::int32_t above = tree.parent[v];
    while (!kept[above]) above = tree.parent[above];
    cost += kept[v] ? costs.price[v] : costs.weight[v] * (costs.level[above] - costs.level[v]);
  }
  return cost;
}

// Compares the cost of the selected nodes with that of all sets of allowed nodes.
void test_no_set_costs_less(const Tree& tree, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t n = tree.parent.size();
  std::vector<double> weight(n, 0), price(n, 0);
  std::vector<std::uint8_t> allowed(n, 0);
  for (std::size_t v = tree.leaves; v < n; ++v) {
    weight[v] = random() % 5;
    price[v] = 1 + random() % 4;
    allowed[v] = random() % 4 > 0;
  }
  const agglo::CondenseCosts costs{tree.height, weight, price, allowed};
  const std::vector<std::uint8_t> found = agglo::select_kept_nodes(tree.parent, costs);
  CHECK(found[n - 1] == 1);
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t subset = 0; subset < 1u << (n - 1 - tree.leaves); ++subset) {
    std::vector<std::uint8_t> kept(n, 0);
    kept[n - 1] = 1;
    bool is_allowed = true;
    for (std::size_t v = tree.leaves; v + 1 < n; ++v)
      if (subset >> (v - tree.leaves) & 1) {
        kept[v] = 1;
        is_allowed = is_allowed && allowed[v];
      }
    if (is_allowed) best = std::min(best, cost_of(tree, costs, kept));
  }
  for (std::size_t v = 0; v + 1 < n; ++v) CHECK(!found[v] || allowed[v]);
  CHECK(std::abs(cost_of(tree, costs, found) - best) < 1e-9);
}

}  // namespace

TEST_CASE("no set of allowed nodes costs less than the kept nodes") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    test_no_set_costs_less(make_tree(2 + seed % 9, 2 + seed % 3, false, seed), seed);
    test_no_set_costs_less(make_tree(2 + seed % 9, 2, true, seed), seed);
  }
}
