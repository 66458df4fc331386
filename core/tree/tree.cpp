#include "tree/tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/csr.hpp"

namespace agglo {
namespace {

std::string node(std::int64_t id) { return "node " + std::to_string(id); }

}  // namespace

std::string find_violation(const TreeView& tree, std::span<const std::int64_t> before,
                           std::span<const std::int64_t> after) {
  const auto& [parent, height, size, round] = tree;
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  const std::int64_t rounds = static_cast<std::int64_t>(after.size());
  if (n == 0) return "it has no nodes";
  const std::int64_t leaves =
      std::find_if(round.begin(), round.end(), [](auto r) { return r != 0; }) - round.begin();
  if (leaves == 0) return "node 0 must be a leaf, of round 0, but its round is " + std::to_string(round[0]);

  std::vector<std::int64_t> below(n - leaves, 0);  // number of leaves below the children of each inner node
  std::vector<std::int64_t> gone(rounds + 1, 0);   // decrease of the number of clusters in each round
  std::vector<std::int32_t> children(n - leaves, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t p = parent[i];
    if (!std::isfinite(height[i])) return node(i) + " has height " + std::to_string(height[i]);
    if (i < leaves) {
      if (size[i] != 1)
        return "leaf " + std::to_string(i) + " has size " + std::to_string(size[i]) + ", not 1";
      if (height[i] != 0)
        return "leaf " + std::to_string(i) + " has height " + std::to_string(height[i]) + ", not 0";
    } else {
      const std::int64_t limit = i == n - 1 ? rounds + 1 : rounds;
      if (round[i] < 1 || round[i] > limit)
        return node(i) + " is of round " + std::to_string(round[i]) + ", outside 1.." + std::to_string(limit);
      if (children[i - leaves] < 2)
        return node(i) + " has " + std::to_string(children[i - leaves]) + " children, fewer than 2";
      if (below[i - leaves] != size[i])
        return node(i) + " has size " + std::to_string(size[i]) + ", but its children have " +
               std::to_string(below[i - leaves]) + " leaves";
      gone[round[i] - 1] += children[i - leaves] - 1;
    }
    if (i == n - 1) {
      if (p != -1)
        return "the last node must be the root, with parent -1, but has parent " + std::to_string(p);
      break;
    }
    if (p <= i || p >= n || p < leaves)
      return node(i) + " has parent " + std::to_string(p) + ", which is not an inner node of a larger id";
    if (height[p] < height[i])
      return node(i) + " is higher than its parent " + std::to_string(p) + ": " + std::to_string(height[i]) +
             " over " + std::to_string(height[p]);
    if (round[p] <= round[i])
      return node(i) + " of round " + std::to_string(round[i]) + " has a parent of round " +
             std::to_string(round[p]);
    ++children[p - leaves];
    below[p - leaves] += size[i];
  }

  std::int64_t clusters = leaves;
  for (std::int64_t r = 0; r < rounds; ++r) {
    const std::int64_t left = clusters - gone[r];
    if (gone[r] == 0) return "no node is of round " + std::to_string(r + 1);
    if (before[r] != clusters || after[r] != left)
      return "round " + std::to_string(r + 1) + " is recorded with " + std::to_string(before[r]) +
             " clusters before and " + std::to_string(after[r]) + " after, but the nodes have " +
             std::to_string(clusters) + " and " + std::to_string(left);
    clusters = left;
  }
  return {};
}

std::vector<double> make_heights_monotone(std::span<const std::int32_t> parent,
                                          std::span<const double> height) {
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  if (height.size() != parent.size())
    throw std::invalid_argument("there are " + std::to_string(n) + " parents, but " +
                                std::to_string(height.size()) + " heights");
  std::vector<double> heights(height.begin(), height.end());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t p = parent[i];
    if (p == -1) continue;
    if (p <= i || p >= n)
      throw std::invalid_argument(node(i) + " has parent " + std::to_string(p) +
                                  ", which is neither -1 nor a node of a larger id");
    if (heights[p] < heights[i]) heights[p] = heights[i];
  }
  return heights;
}

std::vector<std::int64_t> label_leaves(std::span<const std::int32_t> parent, std::span<const bool> merged,
                                       std::int64_t leaves) {
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  // The highest merged ancestor of each node, or the node itself if there is none.
  std::vector<std::int32_t> top(n);
  for (std::int64_t i = n - 1; i >= 0; --i) {
    const std::int32_t p = parent[i];
    top[i] = p >= 0 && (merged[p] || top[p] != p) ? top[p] : static_cast<std::int32_t>(i);
  }
  // The label of the cluster that consists of the leaves below a node, or -1 if it has no label yet.
  std::vector<std::int32_t> label_of(n, -1);
  std::vector<std::int64_t> labels(leaves);
  std::int32_t clusters = 0;
  for (std::int64_t i = 0; i < leaves; ++i) {
    std::int32_t& label = label_of[top[i]];
    if (label < 0) label = clusters++;
    labels[i] = label;
  }
  return labels;
}

std::vector<std::int32_t> find_cluster_nodes(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int64_t> labels, std::int64_t clusters) {
  constexpr std::int64_t mixed = -1, unknown = -2;
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  std::vector<std::int64_t> label(labels.begin(), labels.end());
  label.resize(n, unknown);
  std::vector<std::int64_t> sizes(clusters, 0);
  for (const std::int64_t cluster : labels)
    if (cluster >= 0) ++sizes[cluster];
  std::vector<std::int32_t> nodes(clusters, -1);
  for (std::int64_t v = 0; v < n; ++v) {
    if (label[v] >= 0 && size[v] == sizes[label[v]]) nodes[label[v]] = static_cast<std::int32_t>(v);
    if (v + 1 == n) break;
    std::int64_t& above = label[parent[v]];
    above = above == unknown || above == label[v] ? label[v] : mixed;
  }
  return nodes;
}

Descendants index_descendants(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                              std::int64_t leaves) {
  const std::int64_t n = static_cast<std::int64_t>(parent.size());
  std::vector<std::int32_t> inner(n - 1);  // the parent of each node, as an index among the inner nodes
  for (std::int64_t i = 0; i < n - 1; ++i) inner[i] = static_cast<std::int32_t>(parent[i] - leaves);
  Csr children = group_by_label<std::int32_t>(inner, n - leaves);
  Descendants found{std::move(children.indptr), std::move(children.indices), std::vector<std::int32_t>(n),
                    std::vector<std::int32_t>(leaves)};

  // Divide the leaves of each node (a range of `order`) among its children, starting from the root.
  // The last child gets the end of the range. The child before it gets the end of what remains, and so on.
  std::vector<std::int32_t> end(n - leaves);
  for (std::int64_t i = n - 1; i >= 0; --i) {
    found.start[i] = i == n - 1 ? 0 : end[parent[i] - leaves] -= size[i];
    if (i >= leaves) end[i - leaves] = found.start[i] + size[i];
  }
  for (std::int64_t i = 0; i < leaves; ++i) found.order[found.start[i]] = static_cast<std::int32_t>(i);
  return found;
}

std::vector<std::int32_t> find_largest_children(const Descendants& tree, std::span<const std::int32_t> size) {
  std::vector<std::int32_t> largest(tree.indptr.size() - 1);
  for (std::size_t v = 0; v < largest.size(); ++v)
    largest[v] =
        *std::max_element(tree.children.begin() + tree.indptr[v], tree.children.begin() + tree.indptr[v + 1],
                          [&](auto a, auto b) { return size[a] < size[b]; });
  return largest;
}

std::vector<double> to_scipy_linkage(const TreeView& tree, std::int64_t leaves) {
  const std::int64_t n = static_cast<std::int64_t>(tree.parent.size());
  const Descendants found = index_descendants(tree.parent, tree.size, leaves);
  std::vector<std::int64_t> order(n - leaves);
  std::iota(order.begin(), order.end(), leaves);
  // The sort is stable. Nodes of equal height stay sorted by id, so children come before their parents.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return tree.height[a] < tree.height[b]; });

  struct Cluster {
    std::int64_t id;
    std::int64_t size;
  };
  std::vector<double> rows;
  rows.reserve(4 * static_cast<std::size_t>(leaves - 1));
  std::vector<std::int64_t> scipy_id(n);  // id of each node in SciPy's matrix; row r has id leaves + r
  std::iota(scipy_id.begin(), scipy_id.begin() + leaves, 0);
  std::vector<Cluster> queue;
  std::int64_t next = leaves;
  for (const std::int64_t v : order) {
    queue.clear();
    for (std::int64_t k = found.indptr[v - leaves]; k < found.indptr[v - leaves + 1]; ++k)
      queue.push_back({scipy_id[found.children[k]], tree.size[found.children[k]]});
    for (std::size_t k = 0; k + 1 < queue.size(); k += 2) {
      const Cluster a = queue[k], b = queue[k + 1], merged{next++, a.size + b.size};
      rows.insert(rows.end(),
                  {static_cast<double>(std::min(a.id, b.id)), static_cast<double>(std::max(a.id, b.id)),
                   tree.height[v], static_cast<double>(merged.size)});
      queue.push_back(merged);
    }
    scipy_id[v] = next - 1;
  }
  return rows;
}

}  // namespace agglo
