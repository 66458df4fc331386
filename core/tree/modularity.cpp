#include "tree/modularity.hpp"

#include <algorithm>

#include "tree/dp_means_path.hpp"

namespace agglo {
namespace {

// Finds lowest common ancestors. The tree is divided into paths.
// On a path, each node is the largest child of the node above it.
// To find a common ancestor, a query climbs from path to path, at most log2(leaves) times from each node.
class CommonAncestors {
 public:
  CommonAncestors(std::span<const std::int32_t> parent, std::span<const std::int32_t> size)
      : nodes_(parent.size()) {
    const auto n = static_cast<std::int64_t>(parent.size());
    std::vector<std::int32_t> largest(n, -1);  // the child of each node with the most leaves
    for (std::int64_t v = 0; v + 1 < n; ++v) {
      std::int32_t& child = largest[parent[v]];
      if (child < 0 || size[v] > size[child]) child = static_cast<std::int32_t>(v);
    }
    for (std::int64_t v = n - 1; v >= 0; --v) {
      const bool continues = v + 1 < n && largest[parent[v]] == v;
      nodes_[v] = continues ? nodes_[parent[v]] : Path{static_cast<std::int32_t>(v), parent[v]};
    }
  }

  // Returns the lowest common ancestor of a and b. A parent has a larger id than its children.
  // The top of a path is its highest node. If a and b are on two paths, no common ancestor is on the path
  // whose top has the smaller id. If a common ancestor were there, the other path would end below this
  // ancestor, and its top would have the smaller id.
  std::int32_t find(std::int32_t a, std::int32_t b) const {
    while (nodes_[a].top != nodes_[b].top)
      if (nodes_[a].top < nodes_[b].top)
        a = nodes_[a].above;
      else
        b = nodes_[b].above;
    return std::max(a, b);
  }

 private:
  struct Path {
    std::int32_t top, above;  // the highest node of the path, and the parent of the highest node
  };
  std::vector<Path> nodes_;  // the path of each node
};

}  // namespace

NodeModularity compute_node_modularity(std::span<const std::int32_t> parent,
                                       std::span<const std::int32_t> size, const GraphView& graph,
                                       std::span<const std::int32_t> leaf_of, const EdgeWeights& weights) {
  const CommonAncestors ancestors(parent, size);
  const auto leaf = [&](std::int64_t i) {
    return leaf_of.empty() ? static_cast<std::int32_t>(i) : leaf_of[i];
  };
  const auto point_weight = [&](std::int64_t i) {
    return weights.point_weights.empty() ? 1.0 : weights.point_weights[i];
  };
  NodeModularity nodes{std::vector<double>(parent.size(), 0.0), std::vector<double>(parent.size(), 0.0)};
  for (std::int64_t i = 0; i < graph.size(); ++i) {
    double degree = 0;
    for (std::int64_t edge = graph.indptr[i]; edge < graph.indptr[i + 1]; ++edge) {
      const std::int32_t j = graph.indices[edge];
      const double excess = weights.scale * (static_cast<double>(graph.weights[edge]) - weights.reference);
      if (!(excess > 0)) continue;
      const double weight = excess * (point_weight(i) * point_weight(j));
      degree += weight;
      if (i < j) nodes.meets[ancestors.find(leaf(i), leaf(j))] += weight;
    }
    nodes.volume[leaf(i)] += degree;
  }
  nodes.volume = sum_descendants<double>(parent, nodes.volume);
  return nodes;
}

ParametricPath compute_modularity_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> meets, std::span<const double> volume,
                                       std::span<const std::uint8_t> given) {
  const std::size_t n = parent.size(), inner = n - static_cast<std::size_t>(leaves);
  // The cost of a node is the square of the sum of its children's shares, minus the squares of these shares.
  // For shares x, y and z, this is (x + y + z)^2 - x^2 - y^2 - z^2 = 2 (x y + (x + y) z).
  // The right side is computed, because it has no differences, which could lose precision.
  const double total = volume.back() > 0 ? volume.back() : 1.0;
  std::vector<double> parts(inner, 0.0), costs(inner, 0.0), prices(inner);
  for (std::size_t v = 0; v + 1 < n; ++v) {
    const std::int64_t above = parent[v] - leaves;
    const double share = volume[v] / total;
    costs[above] += 2 * parts[above] * share;
    parts[above] += share;
  }
  for (std::size_t i = 0; i < inner; ++i) prices[i] = 2 * meets[i + leaves] / total;
  return compute_parametric_path(parent, leaves, costs, prices, given);
}

std::vector<double> min_over_ancestors(std::span<const std::int32_t> parent, std::span<const double> values) {
  std::vector<double> smallest(values.begin(), values.end());
  for (std::size_t v = smallest.size() - 1; v-- > 0;)
    smallest[v] = std::min(smallest[v], smallest[parent[v]]);
  return smallest;
}

}  // namespace agglo
