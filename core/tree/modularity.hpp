// The modularity of the nodes of a tree on a graph over its leaves, and the path of the best partitions.
//
// The modularity of a partition at resolution γ is the sum over its clusters of E - γ V^2.
// E is the share of the edge weight inside the cluster. V is the cluster's share of the sum of all degrees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/graph.hpp"
#include "tree/parametric_path.hpp"

namespace agglo {

// How to compute the evidence of an edge: scale * (weight - reference), or 0 if this is negative.
// It is multiplied by the weights of both points. If `point_weights` is empty, they are 1.
struct EdgeWeights {
  double reference, scale;
  std::span<const double> point_weights;
};

struct NodeModularity {
  std::vector<double> meets;   // by node: the weight of the edges whose lowest common ancestor is the node
  std::vector<double> volume;  // by node: the sum of the degrees of its leaves
};

// `leaf_of` has the leaf of each point of the graph. If it is empty, point i is leaf i.
// Sums are computed in a fixed order. The time is O(nodes + edges * log(leaves)), and usually less.
NodeModularity compute_node_modularity(std::span<const std::int32_t> parent,
                                       std::span<const std::int32_t> size, const GraphView& graph,
                                       std::span<const std::int32_t> leaf_of, const EdgeWeights& weights);

// Computes the partitions of largest modularity for all resolutions, where λ is 1 / γ.
// The costs of the path are sums of V^2, and its prices are shares of the edge weight between clusters.
// `meets` and `volume` are as in NodeModularity. If the volume of the root is 0, no edge supports a merge.
ParametricPath compute_modularity_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> meets, std::span<const double> volume,
                                       std::span<const std::uint8_t> given = {});

// For each node, returns the smallest of `values` over the node and all its ancestors.
std::vector<double> min_over_ancestors(std::span<const std::int32_t> parent, std::span<const double> values);

}  // namespace agglo
