#include <cmath>

#include "test_case.hpp"
#include "tree/modularity.hpp"
#include "trees.hpp"

namespace {

// Compares node sums with the definition: for each edge, add its weight to all common ancestors of its
// points.
void test_node_sums(const Tree& tree, unsigned seed) {
  std::mt19937 random(seed);
  const auto n = static_cast<std::size_t>(tree.leaves);
  std::vector<std::vector<float>> matrix(n, std::vector<float>(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) matrix[i][j] = matrix[j][i] = static_cast<float>(random() % 4);
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      if (matrix[i][j] > 0) {
        indices.push_back(static_cast<std::int32_t>(j));
        values.push_back(matrix[i][j]);
      }
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  std::vector<std::int32_t> size(tree.parent.size(), 0);
  std::vector<double> inside(tree.parent.size(), 0), volume(tree.parent.size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<bool> above(tree.parent.size(), false);
    for (auto v = static_cast<std::int32_t>(i); v >= 0; v = tree.parent[v]) {
      above[v] = true;
      ++size[v];
      for (std::size_t j = 0; j < n; ++j) volume[v] += std::max(matrix[i][j] - 1.0, 0.0);
    }
    for (std::size_t j = 0; j < i; ++j)
      for (auto v = static_cast<std::int32_t>(j); v >= 0; v = tree.parent[v])
        if (above[v]) inside[v] += std::max(matrix[i][j] - 1.0, 0.0);
  }
  const auto nodes =
      agglo::compute_node_modularity(tree.parent, size, {indptr, indices, values}, {}, {1.0, 1.0, {}});
  CHECK(nodes.volume == volume);
  std::vector<double> sums = nodes.meets;
  for (std::size_t v = 0; v + 1 < sums.size(); ++v) sums[tree.parent[v]] += sums[v];
  CHECK(sums == inside);
  const auto path = agglo::compute_modularity_path(tree.parent, tree.leaves, nodes.meets, nodes.volume);
  CHECK(path.clusters.front() == tree.leaves && path.clusters.back() == 1);
  const auto merged_at = agglo::min_over_ancestors(tree.parent, path.critical);
  for (std::size_t v = 0; v + 1 < merged_at.size(); ++v) CHECK(merged_at[v] <= merged_at[tree.parent[v]]);
}

}  // namespace

TEST_CASE("node sums are those of the definition, and the path goes from all leaves to one cluster") {
  for (unsigned seed = 0; seed < 200; ++seed)
    test_node_sums(make_tree(2 + seed % 30, 2 + seed % 5, seed % 4 == 3, seed), seed);
}
