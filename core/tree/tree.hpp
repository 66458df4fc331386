// The tree that a clustering makes: sweeps over its columns, from the leaves up or from the root down. None
// of them recurses, because a tree may be as deep as it has leaves.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace agglo {

// A tree that somebody else owns: a column entry per node, the leaves first. Invariants, which everything but
// `violation` relies on:
//  1. leaves come first, are of round 0, size 1 and height 0; there is at least one;
//  2. a node's parent has a larger id and is no leaf; the last node is the root, the only one with parent -1;
//  3. every other node has two children or more, and the sum of their sizes;
//  4. heights are finite, and a parent is not below its children;
//  5. a parent's round is larger than its children's; only the root may be of the round after the last.
struct TreeView {
  std::span<const std::int32_t> parent;
  std::span<const double> height;
  std::span<const std::int32_t> size;
  std::span<const std::int32_t> round;
};

// The first violation of the invariants, in words; empty if there is none. `before` and `after` hold the
// number of clusters on both sides of every round, which the nodes must bear out.
std::string violation(const TreeView& tree, std::span<const std::int64_t> before,
                      std::span<const std::int64_t> after);

// Heights that never decrease towards the roots: every node's own, or that of its highest child. There may be
// many roots, with parent -1; a parent without a larger id is an error.
std::vector<double> settled(std::span<const std::int32_t> parent, std::span<const double> height);

// The cluster of every leaf once the nodes with joined[node] have merged: 0, 1, ... in order of first
// appearance. Whatever lies below a joined node counts as joined.
std::vector<std::int64_t> partition(std::span<const std::int32_t> parent, std::span<const bool> joined,
                                    std::int64_t leaves);

// The node of which each of `clusters` clusters has all the leaves and no others, -1 if there is none;
// labels[leaf] is the cluster of a leaf, or -1.
std::vector<std::int32_t> nodes_of(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                                   std::span<const std::int64_t> labels, std::int64_t clusters);

// Where to find what is below a node.
struct Below {
  std::vector<std::int64_t>
      indptr;  // node v has the children children[indptr[v - leaves] : indptr[v - leaves + 1]],
  std::vector<std::int32_t> children;  // ascending,
  std::vector<std::int32_t> start;     // and the leaves order[start[v] : start[v] + size[v]]
  std::vector<std::int32_t> order;
};
Below below(std::span<const std::int32_t> parent, std::span<const std::int32_t> size, std::int64_t leaves);

// Of each inner node the child with the most leaves, the first of equals. Paths of such children split the
// tree, and from any leaf to the root at most log2(leaves) of the nodes are not largest children.
std::vector<std::int32_t> largest_children(const Below& tree, std::span<const std::int32_t> size);

// SciPy's linkage matrix, row by row: (one cluster, the other, height, size), heights ascending. A node of m
// children becomes m - 1 rows of the same height, joined like a knockout tournament, which keeps them
// shallow.
std::vector<double> linkage(const TreeView& tree, std::int64_t leaves);

}  // namespace agglo
