// Operations on cluster trees. No function is recursive, because a tree may be very deep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace agglo {

// A view of a tree as a table: one column per attribute, with one entry per node.
// A valid tree satisfies these invariants:
//  1. Leaves come first. They have round 0, size 1 and height 0. There is at least one leaf.
//  2. A parent is not a leaf, and has a larger id than its children.
//     Only the last node, the root, has parent -1.
//  3. An inner node has at least two children. Its size is the sum of their sizes.
//  4. Heights are finite. The height of a parent is at least the heights of its children.
//  5. A parent has a larger round than its children.
//     The largest possible round is the number of rounds. Only the root may have a round larger by one.
// All functions except find_violation and make_heights_monotone require a valid tree.
struct TreeView {
  std::span<const std::int32_t> parent;
  std::span<const double> height;
  std::span<const std::int32_t> size;
  std::span<const std::int32_t> round;
};

// Returns a description of the first violated invariant, or an empty string if the tree is valid.
// Also checks `before` and `after`, the recorded numbers of clusters before and after each round.
std::string find_violation(const TreeView& tree, std::span<const std::int64_t> before,
                           std::span<const std::int64_t> after);

// Returns new heights. The height of each node is raised to at least the heights of its children.
// The tree may have several roots. A root has parent -1.
// Throws invalid_argument if a parent does not have a larger id than its child.
std::vector<double> make_heights_monotone(std::span<const std::int32_t> parent,
                                          std::span<const double> height);

// Returns the cluster label of each leaf after all nodes with merged[node] = true have been merged.
// Labels are 0, 1, ... in order of first appearance. All nodes below a merged node are merged as well.
std::vector<std::int64_t> label_leaves(std::span<const std::int32_t> parent, std::span<const bool> merged,
                                       std::int64_t leaves);

// For each cluster, returns the node that has exactly the leaves of the cluster.
// If there is no such node, returns -1 for this cluster.
// labels[leaf] is the cluster of a leaf, or -1 if the leaf is in no cluster.
std::vector<std::int32_t> find_cluster_nodes(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int64_t> labels, std::int64_t clusters);

// The children and the leaves of all nodes.
// The children of inner node v are children[indptr[v - leaves] : indptr[v - leaves + 1]], in ascending order.
// The leaves of node v are order[start[v] : start[v] + size[v]].
struct Descendants {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> children;
  std::vector<std::int32_t> start;
  std::vector<std::int32_t> order;
};
Descendants index_descendants(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                              std::int64_t leaves);

// For each inner node, returns the child with the most leaves. In a tie, returns the first of these children.
// A path from a leaf to the root contains at most log2(leaves) nodes that are not largest children.
std::vector<std::int32_t> find_largest_children(const Descendants& tree, std::span<const std::int32_t> size);

// Converts a tree to SciPy's linkage matrix, flattened row by row.
// A row is (first cluster, second cluster, height, size). Rows are sorted by height.
// A node with m children becomes m - 1 rows of equal height.
// Children are merged in pairs, then the pairs are merged in pairs, so that the binary tree is shallow.
std::vector<double> to_scipy_linkage(const TreeView& tree, std::int64_t leaves);

}  // namespace agglo
