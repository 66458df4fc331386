// How well a tree or a flat clustering fits known classes, or its points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Over all pairs of leaves of one class, the mean share of that class among the leaves under the pair's least
// common ancestor; NaN if there is no such pair. `parent` and `size` are those of a tree (see TreeView);
// `classes` holds a number in [0, n_classes) for each leaf. Takes O(n log n) whatever the shape of the tree.
double dendrogram_purity(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                         std::span<const std::int32_t> classes, std::int64_t n_classes);

// For every node the number of pairs of leaves of one class whose least common ancestor it is. Arguments and
// cost are those of dendrogram_purity.
std::vector<std::int64_t> pairs_met(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                                    std::span<const std::int32_t> classes, std::int64_t n_classes);

// The sum of squared distances of points to the mean of their cluster. Cluster c has the points
// order[bounds[c] : bounds[c + 1]], and point i the coordinates points[i * dimensions : (i + 1) *
// dimensions].
template <class T>
double within_sum(std::span<const T> points, std::int64_t dimensions, std::span<const std::int64_t> order,
                  std::span<const std::int64_t> bounds);

}  // namespace agglo
