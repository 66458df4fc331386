// The best partitions of a tree for all λ at once, where each node has a cost and a price per unit of λ.
//
// A partition is a set of nodes that contains exactly one ancestor of each leaf. A leaf is its own ancestor
// here. The total of a partition is the sum of the costs of its nodes, plus λ times the sum of their prices.
// No partition has a smaller sum of costs than the leaves. Merging nodes never increases the sum of prices.
// So the best partitions are nested: they become coarser as λ grows.
//
// The DP-means path and the modularity path are both of this kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

struct ParametricPath {
  // By node: the smallest λ at which the node costs no more than any partition of its descendants.
  // It is 0 for leaves and for given nodes, and infinity if merging the node does not lower the sum of
  // prices. In the best partition for λ, the nodes with critical[node] <= λ are merged. All descendants of a
  // merged node count as merged.
  std::vector<double> critical;
  // By linear piece of the least total: its smallest λ, and the number of clusters.
  // Also by piece: the sum of costs minus that of the leaves, and the sum of prices of the leaves minus that
  // of the piece. The first λ is 0 and the λs increase. The numbers of clusters decrease to 1.
  std::vector<double> lams, costs, prices;
  std::vector<std::int64_t> clusters;
};

// Computes the path of a valid tree with the column `parent`.
// `costs` has one entry per inner node: its cost minus the sum of the costs of its children.
// `prices` has one entry per inner node: the sum of the prices of its children minus its own price.
// All entries are finite, and no price is negative.
// `given` is empty, or has 1 for each node that is always merged, together with all its descendants.
ParametricPath compute_parametric_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> costs, std::span<const double> prices,
                                       std::span<const std::uint8_t> given = {});

}  // namespace agglo
