#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>

#include "test_case.hpp"
#include "tree/tree.hpp"
#include "trees.hpp"

namespace {

std::string find_violation(const Tree& tree) {
  return agglo::find_violation(tree.view(), tree.before, tree.after);
}

std::vector<std::int64_t> label_leaves(const Tree& tree, double height) {
  const std::size_t n = tree.parent.size();
  const auto merged = std::make_unique<bool[]>(n);
  for (std::size_t i = 0; i < n; ++i) merged[i] = tree.height[i] <= height;
  return agglo::label_leaves(tree.parent, {merged.get(), n}, tree.leaves);
}

TEST_CASE("every violated invariant of a tree is reported") {
  const Tree good = make_tree(20, 4, false, 1);
  CHECK(find_violation(good).empty());
  const auto breaks = [&](const char* words, const auto& change) {
    Tree bad = good;
    change(bad);
    if (find_violation(bad).find(words) == std::string::npos)
      std::fprintf(stderr, "expected \"%s\", got \"%s\"\n", words, find_violation(bad).c_str());
    CHECK(find_violation(bad).find(words) != std::string::npos);
  };
  breaks("must be a leaf", [](Tree& t) { t.round[0] = 1; });
  breaks("leaf 3 has size 2", [](Tree& t) { t.size[3] = 2; });
  breaks("leaf 3 has height", [](Tree& t) { t.height[3] = 0.5; });
  breaks("has height nan", [](Tree& t) { t.height[22] = std::numeric_limits<double>::quiet_NaN(); });
  breaks("node 4 has parent 2", [](Tree& t) { t.parent[4] = 2; });
  breaks("node 4 has parent -1", [](Tree& t) { t.parent[4] = -1; });
  breaks("node 4 has parent 1000", [](Tree& t) { t.parent[4] = 1000; });
  breaks("must be the root", [](Tree& t) { t.parent.back() = 0; });
  breaks("higher than its parent", [](Tree& t) { t.height[20] = 1e9; });
  breaks("has size", [](Tree& t) { ++t.size[21]; });
  breaks("has a parent of round -1", [](Tree& t) { t.round[20] = -1; });
  breaks("outside 1..", [](Tree& t) { t.round[20] = 1000; });
  breaks("is recorded with", [](Tree& t) { ++t.after[0]; });
  breaks("outside 1..", [](Tree& t) { t.before.pop_back(), t.after.pop_back(), t.round.back() += 1; });
  breaks("no nodes", [](Tree& t) { t = Tree{}; });
  breaks("no node is of round", [](Tree& t) { t.before.push_back(1), t.after.push_back(1); });

  Tree alone;
  alone.parent = {-1}, alone.height = {0}, alone.size = {1}, alone.round = {0};
  CHECK(find_violation(alone).empty());
  Tree forest = alone;  // two points that never merge, under the root of a forest
  forest.parent = {2, 2, -1}, forest.height = {0, 0, 1}, forest.size = {1, 1, 2}, forest.round = {0, 0, 1};
  CHECK(find_violation(forest).empty());
}

TEST_CASE("heights are raised to those of the children; wrong parents are errors") {
  const std::vector<std::int32_t> parent{2, 2, 4, 4, -1};
  CHECK((agglo::make_heights_monotone(parent, std::vector<double>{0, 0, 5, 0, 3}) ==
         std::vector<double>{0, 0, 5, 0, 5}));
  for (const std::int32_t wrong : {-2, 0, 1, 5}) {
    std::string message;
    try {
      agglo::make_heights_monotone(std::vector<std::int32_t>{2, wrong, 4, 4, -1}, std::vector<double>(5));
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    CHECK(message.find("node 1 has parent " + std::to_string(wrong)) == 0);
  }
}

void test_label_leaves(const Tree& tree) {
  for (double height = -1; height <= tree.height.back() + 1; height += 1 + tree.height.back() / 8) {
    const auto labels = label_leaves(tree, height);
    std::int64_t next = 0;
    for (std::int32_t a = 0; a < tree.leaves; ++a) {
      CHECK(labels[a] <= next);
      next = std::max(next, labels[a] + 1);
      for (std::int32_t b = 0; b < a; ++b)
        CHECK((labels[a] == labels[b]) == (tree.height[common_ancestor(tree, a, b)] <= height));
    }
  }
}

void test_descendants(const Tree& tree) {
  const agglo::Descendants found = agglo::index_descendants(tree.parent, tree.size, tree.leaves);
  const auto n = static_cast<std::int32_t>(tree.parent.size());
  for (std::int32_t v = 0; v < n; ++v) {
    std::set<std::int32_t> leaves;
    for (std::int32_t k = 0; k < tree.size[v]; ++k) leaves.insert(found.order[found.start[v] + k]);
    CHECK(static_cast<std::int32_t>(leaves.size()) == tree.size[v]);
    for (const std::int32_t leaf : leaves) CHECK(leaf == v || common_ancestor(tree, leaf, v) == v);
    if (v < tree.leaves) continue;
    for (std::int64_t k = found.indptr[v - tree.leaves]; k < found.indptr[v - tree.leaves + 1]; ++k) {
      CHECK(tree.parent[found.children[k]] == v);
      CHECK(k == found.indptr[v - tree.leaves] || found.children[k - 1] < found.children[k]);
    }
  }
  CHECK(found.indptr.back() == n - 1);
}

void test_scipy_linkage(const Tree& tree) {
  const auto rows = agglo::to_scipy_linkage(tree.view(), tree.leaves);
  CHECK(rows.size() == 4 * static_cast<std::size_t>(tree.leaves - 1));
  std::vector<std::set<std::int32_t>> clusters;
  for (std::int32_t i = 0; i < tree.leaves; ++i) clusters.push_back({i});
  for (std::size_t r = 0; 4 * r < rows.size(); ++r) {
    const auto a = static_cast<std::size_t>(rows[4 * r]), b = static_cast<std::size_t>(rows[4 * r + 1]);
    CHECK(a < b && b < clusters.size() && !clusters[a].empty() && !clusters[b].empty());
    CHECK(r == 0 || rows[4 * r - 2] <= rows[4 * r + 2]);
    for (const auto i : clusters[a])
      for (const auto j : clusters[b]) CHECK(tree.height[common_ancestor(tree, i, j)] == rows[4 * r + 2]);
    std::set<std::int32_t> both = clusters[a];
    both.insert(clusters[b].begin(), clusters[b].end());
    CHECK(static_cast<double>(both.size()) == rows[4 * r + 3]);
    clusters[a].clear(), clusters[b].clear();
    clusters.push_back(both);
  }
}

TEST_CASE("a chain of 200,000 nodes needs no recursion") {
  const std::int64_t n = 200000;
  const Tree chain = make_tree(n, 2, true, 0);
  CHECK(find_violation(chain).empty());
  CHECK(label_leaves(chain, 1e9) == std::vector<std::int64_t>(n, 0));
  CHECK(agglo::index_descendants(chain.parent, chain.size, n).order.size() == static_cast<std::size_t>(n));
  CHECK(agglo::to_scipy_linkage(chain.view(), n).back() == static_cast<double>(n));
}

}  // namespace

// Calls body(tree) for random trees of all shapes.
template <class Body>
void for_each_tree(const Body& body) {
  for (unsigned seed = 0; seed < 60; ++seed) body(make_tree(1 + seed, 2 + seed % 7, seed % 5 == 4, seed));
}

TEST_CASE("random trees have no violation") {
  for_each_tree([](const Tree& tree) { CHECK(find_violation(tree).empty()); });
}

TEST_CASE("two leaves have the same label if their common ancestor is below the height") {
  for_each_tree(test_label_leaves);
}

TEST_CASE("the index of descendants has the leaves and children of every node") {
  for_each_tree(test_descendants);
}

TEST_CASE("the SciPy linkage merges the same clusters at the same heights") {
  for_each_tree([](const Tree& tree) {
    if (tree.leaves > 1) test_scipy_linkage(tree);
  });
}
