// Quality measures of trees and flat clusterings: dendrogram purity and within-cluster sums of squares.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Computes the dendrogram purity of a tree.
//
// Dendrogram purity is a mean over all pairs of leaves of the same class.
// The value of a pair is the purity of the lowest common ancestor of the two leaves.
// This purity is the share of leaves below the ancestor that belong to the class of the pair.
// If no class has two leaves, returns NaN.
//
// `parent` and `size` are columns of a valid tree. classes[leaf] is the class of a leaf, in [0, n_classes).
// For a tree of any shape with n leaves, the time is O(n log n).
double dendrogram_purity(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                         std::span<const std::int32_t> classes, std::int64_t n_classes);

// For each node, counts the pairs of leaves of the same class whose lowest common ancestor is the node.
std::vector<std::int64_t> count_pairs_by_lca(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int32_t> classes, std::int64_t n_classes);

// Returns the sum of squared distances of all points to the mean of their cluster.
// The points of cluster c are order[bounds[c] : bounds[c + 1]].
// The coordinates of point i are points[i * dimensions : (i + 1) * dimensions].
template <class T>
double sum_within_clusters(std::span<const T> points, std::int64_t dimensions,
                           std::span<const std::int64_t> order, std::span<const std::int64_t> bounds);

}  // namespace agglo
