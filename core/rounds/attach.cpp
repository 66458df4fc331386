#include "rounds/attach.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/csr.hpp"
#include "rounds/linkage.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 64;  // number of new points per parallel task

// A tree with two more arrays: the weight and the smallest leaf of each node.
struct Ancestry : AttachTree {
  std::vector<std::int32_t> smallest;  // the smallest leaf below each node
  std::vector<double> weight;          // sum of leaf weights below each node; empty means weight 1 per leaf

  Ancestry(const AttachTree& tree, std::span<const double> weights)
      : AttachTree(tree), smallest(tree.parent.size()), weight(weights.begin(), weights.end()) {
    if (!weight.empty()) {
      weight.resize(parent.size(), 0);
      for (std::size_t node = 0; node < parent.size(); ++node)
        if (parent[node] >= 0) weight[parent[node]] += weight[node];
    }
    std::fill(smallest.begin(), smallest.end(), std::numeric_limits<std::int32_t>::max());
    for (std::size_t node = 0; node < parent.size(); ++node) {
      if (static_cast<std::int64_t>(node) < leaves) smallest[node] = static_cast<std::int32_t>(node);
      if (parent[node] >= 0) smallest[parent[node]] = std::min(smallest[parent[node]], smallest[node]);
    }
  }

  double total_weight(std::int32_t node) const { return weight.empty() ? size[node] : weight[node]; }
};

// Computes the linkage of a new point and a cluster from the edges between them.
template <class Linkage>
struct EdgeComparison {
  using Stat = typename Linkage::Stat;

  const Ancestry& tree;
  const Linkage linkage;

  Stat stat(std::int32_t leaf, float weight) const {
    if constexpr (UsesPointWeights<Linkage>)
      if (!tree.weight.empty()) return linkage.stat(weight, tree.weight[leaf]);
    return linkage.stat(weight);
  }
  static void combine(Stat& a, const Stat& b) { Linkage::combine(a, b); }
  double value(const Stat& stat, std::int32_t node) const {
    return linkage.value(stat, 1, tree.total_weight(node));
  }
};

// Computes the linkage of a new point and a cluster from the mean of the cluster.
struct MeanComparison {
  struct Stat {
    double value;
    std::int32_t node;  // the node that `value` was computed for
  };

  const MeanAttachment& rule;
  const VectorComparison& comparison;
  const std::int64_t leaves;
  const float* const point;
  const Moment own;

  Stat stat(std::int32_t leaf, float weight) const {
    return {comparison.compare_points(own, {rule.weight[leaf], 0, 0, true}, weight), leaf};
  }
  // Combines two edges to the same cluster. If the cluster is a leaf, the closer edge is kept.
  // If the cluster is not a leaf, value() recomputes the linkage, so the combined value is not used.
  static void combine(Stat& a, const Stat& b) { a.value = std::max(a.value, b.value); }
  double value(Stat& stat, std::int32_t node) const {
    if (std::exchange(stat.node, node) == node) return stat.value;
    const Moment moment{rule.weight[node], rule.squared_norm[node], rule.spread[node], false};
    return stat.value =
               comparison.compare_means(own, point, moment, rule.mean.data() + (node - leaves) * rule.d);
  }
};

// The attachment of a new point: the cluster, the round and the linkage. Node -1 means not attached.
struct Attachment {
  std::int32_t node = -1, round = -1;
  double value = std::numeric_limits<double>::quiet_NaN();
};

// Replays the rounds for one new point. In each round, clusters_ has the clusters that contain neighbours of
// the point.
template <class Comparison>
class Replay {
 public:
  using Stat = typename Comparison::Stat;

  Attachment run(const Ancestry& tree, std::span<const float> thresholds, const Comparison& comparison,
                 std::span<const std::int32_t> targets, std::span<const float> weights) {
    clusters_.clear();
    for (std::size_t e = 0; e < targets.size(); ++e)
      if (targets[e] >= 0) clusters_.push_back({targets[e], comparison.stat(targets[e], weights[e])});
    combine_edges();
    const auto end = static_cast<std::int32_t>(thresholds.size());
    for (std::int32_t first = 1; !clusters_.empty();) {
      Attachment nearest;
      std::int32_t next = end;  // the next round in which one of clusters_ merges
      for (auto& [node, stat] : clusters_) {
        const double value = comparison.value(stat, node);
        if (nearest.node < 0 || value > nearest.value ||
            (value == nearest.value && tree.smallest[node] < tree.smallest[nearest.node]))
          nearest = {node, 0, value};
        if (tree.parent[node] >= 0) next = std::min(next, tree.round[tree.parent[node]]);
      }
      // The clusters in clusters_ do not merge before round `next`. So find the first round up to `next`
      // whose threshold the nearest cluster reaches. Binary search is possible, because thresholds never
      // increase.
      const auto reached = std::partition_point(
          thresholds.begin() + (first - 1), thresholds.begin() + next,
          [value = static_cast<float>(nearest.value)](float threshold) { return !(value >= threshold); });
      if (reached != thresholds.begin() + next) {
        nearest.round = static_cast<std::int32_t>(reached - thresholds.begin()) + 1;
        return nearest;
      }
      if (next == end) break;
      for (auto& [node, stat] : clusters_)
        if (tree.parent[node] >= 0 && tree.round[tree.parent[node]] == next) node = tree.parent[node];
      combine_edges();
      first = next + 1;
    }
    return {};
  }

 private:
  struct NearCluster {
    std::int32_t node;
    Stat stat;
  };

  // Combines all edges that lead to the same cluster into one entry of clusters_.
  void combine_edges() {
    std::sort(clusters_.begin(), clusters_.end(),
              [](const NearCluster& a, const NearCluster& b) { return a.node < b.node; });
    std::size_t kept = 0;
    for (std::size_t e = 1; e < clusters_.size(); ++e) {
      if (clusters_[e].node == clusters_[kept].node)
        Comparison::combine(clusters_[kept].stat, clusters_[e].stat);
      else
        clusters_[++kept] = clusters_[e];
    }
    if (!clusters_.empty()) clusters_.resize(kept + 1);
  }

  std::vector<NearCluster> clusters_;
};

// Attaches one new point, given its neighbours `targets` and the weights of the edges to them.
template <class Comparison>
Attachment attach_point(const Ancestry& tree, std::span<const float> thresholds, const Comparison& comparison,
                        std::span<const std::int32_t> targets, std::span<const float> weights) {
  thread_local Replay<Comparison> replay;  // the memory of `replay` is reused for later points
  return replay.run(tree, thresholds, comparison, targets, weights);
}

// Sets the fixed-point format of `spec`, so that the sums of the edge weights of one new point are exact.
// The function `choose_fixed_point` in src/agglo/rounds/linkage.py returns the same format.
void set_fixed_point(LinkageSpec& spec, const Ancestry& tree, std::span<const std::int32_t> targets,
                     std::span<const float> weights) {
  const auto exponent_of = [](double value) {
    int exponent;
    std::frexp(value, &exponent);
    return exponent;
  };
  const bool weighted = !tree.weight.empty();
  int total = static_cast<int>(std::bit_width(weights.size())), one = 0;
  if (weighted) {
    double sum = 0, lightest = std::numeric_limits<double>::infinity();
    for (const std::int32_t leaf : targets) {
      if (leaf < 0) continue;
      sum += tree.weight[leaf];
      lightest = std::min(lightest, tree.weight[leaf]);
    }
    total = exponent_of(sum);
    one = std::isfinite(lightest) ? exponent_of(lightest) - 1 : total;
  }
  float largest = 0, smallest = std::numeric_limits<float>::infinity();
  for (const float weight : weights) {
    largest = std::max(largest, std::fabs(weight));
    if (weight != 0) smallest = std::min(smallest, std::fabs(weight));
  }
  const int room = 62 - total, shift = room - exponent_of(largest);
  const bool is_long = largest > 0 && shift + one < kFloatBits - exponent_of(smallest);
  spec.limbs = is_long ? Int384::kLimbs : 1;
  spec.shift = shift + 64 * (static_cast<int>(spec.limbs) - 1);
  spec.count_shift = weighted ? room : 0;
}

// Calls attach(point, targets, weights) for each new point. Returns the attachments of all new points.
template <class Attach>
Attachments attach_all(const DirectedView& edges, const Attach& attach, ThreadPool& pool,
                       const Report& report) {
  const std::int64_t n = edges.size();
  Attachments result;
  result.node.resize(n);
  result.round.resize(n);
  result.value.resize(n);
  pool.ranges(
      n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t begin = edges.indptr[i], count = edges.indptr[i + 1] - begin;
          const Attachment attachment =
              attach(i, edges.targets.subspan(begin, count), edges.weights.subspan(begin, count));
          result.node[i] = attachment.node;
          result.round[i] = attachment.round;
          result.value[i] = attachment.value;
        }
      },
      report);
  return result;
}

using Targets = std::span<const std::int32_t>;
using Weights = std::span<const float>;

}  // namespace

Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const EdgeAttachment& rule,
                          ThreadPool& pool, const Report& report) {
  const Ancestry ancestry(tree, rule.weights);
  const auto attach = [&](std::int64_t, Targets targets, Weights weights) {
    LinkageSpec spec = rule;
    if (rule.linkage == Linkage::average) set_fixed_point(spec, ancestry, targets, weights);
    return with_linkage(spec, [&]<class Linkage>(const Linkage& linkage) {
      return attach_point(ancestry, rule.thresholds, EdgeComparison<Linkage>{ancestry, linkage}, targets,
                          weights);
    });
  };
  return attach_all(edges, attach, pool, report);
}

Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const MeanAttachment& rule,
                          ThreadPool& pool, const Report& report) {
  const VectorComparison comparison(rule.linkage, rule.metric, rule.d);
  const Ancestry ancestry(tree, {});
  const auto attach = [&](std::int64_t i, Targets targets, Weights weights) {
    const float* point = rule.points.data() + i * rule.d;
    const MeanComparison compare{
        rule, comparison, tree.leaves, point, {1, dot(point, point, rule.d), 0, true}};
    return attach_point(ancestry, rule.thresholds, compare, targets, weights);
  };
  return attach_all(edges, attach, pool, report);
}

NodeMoments compute_node_moments(std::span<const std::int32_t> parent, std::int64_t leaves,
                                 const Vectors& vectors) {
  const Ancestry tree({parent, {}, {}, leaves}, {});
  const auto n = static_cast<Id>(parent.size());
  const Csr children = group_by_label(parent.first(n - 1), n);  // the last node is the root and has no parent
  NodeMoments result{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n), {}};
  result.mean.reserve((n - leaves) * vectors.d);
  Moments moments(vectors, leaves);
  Moments::Scratch scratch;
  std::vector<Id> parts;
  for (Id node = 0; node < n; ++node) {
    if (node >= leaves) {
      // The moments of a child are stored in the row of the child's smallest leaf.
      parts.clear();
      for (const Id child : children.row(node)) parts.push_back(tree.smallest[child]);
      std::sort(parts.begin(), parts.end());
      moments.merge(parts, scratch);
      result.mean.insert(result.mean.end(), scratch.mean.begin(), scratch.mean.end());
    }
    const Moment& moment = moments[tree.smallest[node]];
    result.weight[node] = moment.weight;
    result.squared_norm[node] = moment.squared_norm;
    result.spread[node] = moment.spread;
  }
  return result;
}

}  // namespace agglo
