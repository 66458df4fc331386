// Measures of how well a tree or a flat clustering fits known classes or its points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Computes the dendrogram purity: over all pairs of leaves of one class, the mean share of that class among
// the leaves of the pair's least common ancestor. NaN if there is no such pair.
//
// `parent` and `size` are columns of a valid tree. `classes` has a number in [0, n_classes) for each leaf.
// The time is O(n log n) for any shape of the tree.
double dendrogram_purity(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                         std::span<const std::int32_t> classes, std::int64_t n_classes);

// Counts, for every node, the pairs of leaves of one class whose least common ancestor it is.
std::vector<std::int64_t> count_pairs_by_lca(std::span<const std::int32_t> parent,
                                             std::span<const std::int32_t> size,
                                             std::span<const std::int32_t> classes, std::int64_t n_classes);

// Sums the squared distances of points to the mean of their cluster. Cluster c has the points order[bounds[c]
// : bounds[c + 1]], and point i has the coordinates points[i * dimensions : (i + 1) * dimensions].
template <class T>
double sum_within_clusters(std::span<const T> points, std::int64_t dimensions,
                           std::span<const std::int64_t> order, std::span<const std::int64_t> bounds);

}  // namespace agglo
