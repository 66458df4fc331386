// Modularity of the nodes of a tree, and the partitions of largest modularity for all resolutions.
//
// Modularity is computed on a graph whose points are leaves of the tree.
// At resolution γ, the modularity of a partition is the sum of E - γ V^2 over its clusters.
// E is the weight of the edges inside the cluster, divided by the weight of all edges.
// V is the sum of the degrees in the cluster, divided by the sum of all degrees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/graph.hpp"
#include "tree/parametric_path.hpp"

namespace agglo {

// How to compute the evidence of an edge, which is used in place of the edge weight.
// The evidence is scale * (weight - reference), or 0 if this is negative.
// The evidence is multiplied by the weights of both points. If `point_weights` is empty, each weight is 1.
struct EdgeWeights {
  double reference, scale;
  std::span<const double> point_weights;
};

struct NodeModularity {
  // The sum of the evidence of the edges for which this node is the lowest common ancestor of both points.
  std::vector<double> meets;
  // The sum of the degrees of the leaves below the node. A degree is a sum of evidence.
  std::vector<double> volume;
};

// Computes both vectors of NodeModularity for a tree and a graph.
// leaf_of[i] is the leaf of point i of the graph. If `leaf_of` is empty, point i is leaf i.
// Sums are computed in a fixed order. The time is at most O(nodes + edges * log(leaves)).
NodeModularity compute_node_modularity(std::span<const std::int32_t> parent,
                                       std::span<const std::int32_t> size, const GraphView& graph,
                                       std::span<const std::int32_t> leaf_of, const EdgeWeights& weights);

// Computes the partitions of largest modularity for all resolutions γ. In the path, λ is 1 / γ.
// The costs of the path are sums of V^2. The prices of the path are shares of the edge weight between
// clusters. `meets` and `volume` are as in NodeModularity. If the volume of the root is 0, no edge supports a
// merge.
ParametricPath compute_modularity_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> meets, std::span<const double> volume,
                                       std::span<const std::uint8_t> given = {});

// For each node, returns the minimum of `values` over the node and all its ancestors.
std::vector<double> min_over_ancestors(std::span<const std::int32_t> parent, std::span<const double> values);

}  // namespace agglo
