#include "evaluation/purity.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "tree/tree.hpp"

namespace agglo {

namespace {

// Calls visit(node, pairs, count) for every inner node and every class.
// `pairs` is the number of pairs of leaves of this class for which the node is the lowest common ancestor.
// `count` is the number of leaves of this class below the node. Classes without pairs are skipped.
template <class Visit>
void for_each_class_at_lca(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                           std::span<const std::int32_t> classes, std::int64_t n_classes,
                           const Visit& visit) {
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  const std::int64_t leaves = static_cast<std::int64_t>(classes.size());
  const Descendants tree = index_descendants(parent, size, leaves);
  std::vector<std::int32_t> in_order(leaves);  // the class of each leaf, in the order of tree.order
  for (std::int64_t i = 0; i < leaves; ++i) in_order[i] = classes[tree.order[i]];
  const auto classes_below = [&](std::int64_t v) {
    return std::span<const std::int32_t>(in_order).subspan(tree.start[v], size[v]);
  };

  const std::vector<std::int32_t> largest = find_largest_children(tree, size);

  // From each leaf, walk up as long as the node is the largest child of its parent.
  // `count` has the number of leaves of each class below the current node of this path.
  // A step to the parent adds only the leaves of the other children of the parent.
  // The parent has at least twice as many leaves as each of these children.
  // So each leaf is added at most log2(n) times.
  std::vector<std::int64_t> count(n_classes, 0), child(n_classes, 0), pairs(n_classes, 0);
  std::vector<std::int32_t> in_child, in_node;  // classes for which `child` or `pairs` is not 0
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    std::int64_t top = leaf;
    const auto climbs = [&] { return top < n - 1 && largest[parent[top] - leaves] == top; };
    if (!climbs()) continue;
    count[classes[leaf]] = 1;
    while (climbs()) {
      const std::int64_t v = parent[top];
      for (std::int64_t k = tree.indptr[v - leaves]; k < tree.indptr[v - leaves + 1]; ++k) {
        if (tree.children[k] == top) continue;
        for (const std::int32_t c : classes_below(tree.children[k]))
          if (child[c]++ == 0) in_child.push_back(c);
        for (const std::int32_t c : in_child) {
          // In each new pair, one leaf is in this child, and the other leaf is in a child added before.
          if (count[c] > 0) {
            if (pairs[c] == 0) in_node.push_back(c);
            pairs[c] += count[c] * child[c];
          }
          count[c] += child[c];
          child[c] = 0;
        }
        in_child.clear();
      }
      for (const std::int32_t c : in_node) {
        visit(v, pairs[c], count[c]);
        pairs[c] = 0;
      }
      in_node.clear();
      top = v;
    }
    for (const std::int32_t c : classes_below(top)) count[c] = 0;
  }
}

}  // namespace

double dendrogram_purity(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                         std::span<const std::int32_t> classes, std::int64_t n_classes) {
  double sum = 0;
  std::int64_t all = 0;
  for_each_class_at_lca(parent, size, classes, n_classes,
                        [&](std::int64_t node, std::int64_t pairs, std::int64_t count) {
                          sum += static_cast<double>(pairs) * (static_cast<double>(count) / size[node]);
                          all += pairs;
                        });
  return all > 0 ? sum / static_cast<double>(all) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::int64_t> count_pairs_by_lca(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int32_t> classes, std::int64_t n_classes) {
  std::vector<std::int64_t> counts(parent.size(), 0);
  for_each_class_at_lca(parent, size, classes, n_classes,
                        [&](std::int64_t node, std::int64_t pairs, std::int64_t) { counts[node] += pairs; });
  return counts;
}

template <class T>
double sum_within_clusters(std::span<const T> points, std::int64_t dimensions,
                           std::span<const std::int64_t> order, std::span<const std::int64_t> bounds) {
  const std::size_t d = static_cast<std::size_t>(dimensions);
  std::vector<double> mean(d), residual(d), squares(d);
  double sum = 0;
  for (std::size_t c = 0; c + 1 < bounds.size(); ++c) {
    const auto members = order.subspan(bounds[c], bounds[c + 1] - bounds[c]);
    if (members.size() < 2) continue;
    const double number = static_cast<double>(members.size());
    std::fill(mean.begin(), mean.end(), 0.0);
    for (const std::int64_t i : members)
      for (std::size_t j = 0; j < d; ++j) mean[j] += points[i * d + j];
    for (double& m : mean) m /= number;
    // Sum the squares in a second pass, because the one-pass formula is inexact far from the origin.
    // `residual`, the sum of the deviations, corrects for the rounding error of the mean.
    std::fill(residual.begin(), residual.end(), 0.0);
    std::fill(squares.begin(), squares.end(), 0.0);
    for (const std::int64_t i : members)
      for (std::size_t j = 0; j < d; ++j) {
        const double deviation = points[i * d + j] - mean[j];
        residual[j] += deviation;
        squares[j] += deviation * deviation;
      }
    for (std::size_t j = 0; j < d; ++j) sum += std::max(0.0, squares[j] - residual[j] * residual[j] / number);
  }
  return sum;
}

template double sum_within_clusters(std::span<const float>, std::int64_t, std::span<const std::int64_t>,
                                    std::span<const std::int64_t>);
template double sum_within_clusters(std::span<const double>, std::int64_t, std::span<const std::int64_t>,
                                    std::span<const std::int64_t>);

}  // namespace agglo
