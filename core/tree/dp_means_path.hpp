// Tree-consistent partitions of minimal cost, for one λ or for all λ at once (the DP-means path).
//
// A tree-consistent partition is a set of nodes that contains exactly one ancestor of each leaf.
// In this definition, a leaf is its own ancestor.
// The cost of a partition is the sum of the costs of its nodes, plus λ per node.
//
// In all functions, `parent` is the column `parent` of a valid tree (see TreeView).
// `costs` has one entry per node. Costs are finite and at least 0. The cost of a leaf is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// For each node, returns the sum of `values` over the node and all its descendants.
template <class T>
std::vector<T> sum_descendants(std::span<const std::int32_t> parent, std::span<const T> values);

// Returns 1 for each node that costs no more than the cheapest partition of its descendants.
// Returns 0 for all other nodes.
//
// The cheapest partition of the tree consists of the highest nodes with value 1.
// If several partitions are equally cheap, the one with the largest clusters is selected.
// In this function, costs may be negative, and leaves may have costs.
std::vector<std::uint8_t> select_cheapest_nodes(std::span<const std::int32_t> parent,
                                                std::span<const double> costs);

// The DP-means path: the cheapest partition of a tree for each λ.
// The cost of the cheapest partition is a piecewise linear, concave and increasing function of λ.
struct PricePath {
  // The critical λ of each node. The critical λ of a leaf is 0.
  // From the critical λ on, the node costs no more than any partition of its descendants.
  // In the cheapest partition for λ, all nodes with critical[node] <= λ are merged.
  // All descendants of a merged node are merged as well.
  std::vector<double> critical;
  // For each linear piece: the smallest λ, the sum of the node costs, and the number of clusters.
  // The first λ is 0. From piece to piece, λ increases. The number of clusters decreases to 1.
  std::vector<double> lams, costs;
  std::vector<std::int64_t> clusters;
};
PricePath compute_price_path(std::span<const std::int32_t> parent, std::span<const double> costs,
                             std::int64_t leaves);

}  // namespace agglo
