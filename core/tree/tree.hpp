// Operations on the tree of a clustering. None of them recurses, because a tree may be as deep as it has
// leaves.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace agglo {

// A view of a tree: one entry per node in each column. All functions but `find_violation` rely on the
// invariants:
//  1. leaves come first, and have round 0, size 1 and height 0; there is at least one;
//  2. the parent of a node has a larger id and is no leaf; the last node is the root, the only one with
//  parent -1;
//  3. an inner node has two children or more; its size is the sum of their sizes;
//  4. heights are finite, and a parent is not lower than its children;
//  5. the round of a parent is larger than those of its children; only the root may be of the round after the
//  last.
struct TreeView {
  std::span<const std::int32_t> parent;
  std::span<const double> height;
  std::span<const std::int32_t> size;
  std::span<const std::int32_t> round;
};

// Describes the first violation of the invariants; empty if there is none. `before` and `after` are the
// numbers of clusters before and after each round, which the nodes must confirm.
std::string find_violation(const TreeView& tree, std::span<const std::int64_t> before,
                           std::span<const std::int64_t> after);

// Raises each height to that of the highest child, so that heights never decrease towards the roots. There
// may be many roots, with parent -1. A parent whose id is not larger is an error.
std::vector<double> make_heights_monotone(std::span<const std::int32_t> parent,
                                          std::span<const double> height);

// Labels the leaves by cluster after the nodes with merged[node] have merged: 0, 1, ... in order of first
// appearance. All nodes below a merged node count as merged.
std::vector<std::int64_t> label_leaves(std::span<const std::int32_t> parent, std::span<const bool> merged,
                                       std::int64_t leaves);

// Finds, for each cluster of a labelling, the node that has exactly its leaves; -1 if there is none.
// labels[leaf] is the cluster of a leaf, or -1.
std::vector<std::int32_t> find_cluster_nodes(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int64_t> labels, std::int64_t clusters);

// The children and the leaves of each node v.
struct Descendants {
  std::vector<std::int64_t>
      indptr;  // children[indptr[v - leaves] : indptr[v - leaves + 1]] are the children of v,
  std::vector<std::int32_t> children;  // in ascending order
  std::vector<std::int32_t> start;     // order[start[v] : start[v] + size[v]] are the leaves of v
  std::vector<std::int32_t> order;
};
Descendants index_descendants(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                              std::int64_t leaves);

// Finds the child with the most leaves of each inner node; ties go to the first. These children form paths.
// From a leaf to the root there are at most log2(leaves) nodes that are not largest children.
std::vector<std::int32_t> find_largest_children(const Descendants& tree, std::span<const std::int32_t> size);

// Converts a tree to SciPy's linkage matrix, row by row: (first cluster, second cluster, height, size), in
// ascending order of height. A node of m children becomes m - 1 rows of the same height. Pairs of children
// merge first, then pairs of pairs, which keeps the result shallow.
std::vector<double> to_scipy_linkage(const TreeView& tree, std::int64_t leaves);

}  // namespace agglo
