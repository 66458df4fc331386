#include "predict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "linkage.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 64;  // new points in a chunk of work

// The tree as new points see it.
struct Ancestry {
  std::span<const std::int32_t> parent, size, round;
  std::vector<std::int32_t> smallest;  // leaf below each node
  std::vector<double> weight;          // of the leaves below each node; empty: as many as they are

  Ancestry(std::span<const std::int32_t> parents, std::span<const std::int32_t> sizes,
           std::span<const std::int32_t> rounds, std::int64_t leaves, std::span<const double> weights)
      : parent(parents),
        size(sizes),
        round(rounds),
        smallest(parents.size()),
        weight(weights.begin(), weights.end()) {
    if (!weight.empty()) {
      weight.resize(parents.size(), 0);
      for (std::size_t node = 0; node < parent.size(); ++node)
        if (parent[node] >= 0) weight[parent[node]] += weight[node];
    }
    std::fill(smallest.begin(), smallest.end(), std::numeric_limits<std::int32_t>::max());
    for (std::size_t node = 0; node < parent.size(); ++node) {
      if (static_cast<std::int64_t>(node) < leaves) smallest[node] = static_cast<std::int32_t>(node);
      if (parent[node] >= 0) smallest[parent[node]] = std::min(smallest[parent[node]], smallest[node]);
    }
  }

  double mass(std::int32_t node) const { return weight.empty() ? size[node] : weight[node]; }
};

// How close a new point is to clusters by the edges into them.
template <class Linkage>
struct ByEdges {
  using Stat = typename Linkage::Stat;

  const Ancestry& tree;
  const Linkage linkage;

  Stat of(std::int32_t leaf, float weight) const {
    if constexpr (Weighing<Linkage>)
      if (!tree.weight.empty()) return linkage.of(weight, tree.weight[leaf]);
    return linkage.of(weight);
  }
  static void combine(Stat& a, const Stat& b) { Linkage::combine(a, b); }
  double value(const Stat& stat, std::int32_t node) const { return linkage.value(stat, 1, tree.mass(node)); }
};

// The same by their means.
struct ByMean {
  struct Stat {
    double value;
    std::int32_t node;  // that it is the value of
  };

  const ByMeans& means;
  const Comparison& compare;
  const std::int64_t leaves;
  const float* const point;
  const Moment own;

  Stat of(std::int32_t leaf, float weight) const {
    return {compare.of_points(own, {means.weight[leaf], 0, 0, true}, weight), leaf};
  }
  // A neighbour that is named twice is as close as the closer of both; other values are of the past.
  static void combine(Stat& a, const Stat& b) { a.value = std::max(a.value, b.value); }
  double value(Stat& stat, std::int32_t node) const {
    if (std::exchange(stat.node, node) == node) return stat.value;
    const Moment moment{means.weight[node], means.square[node], means.spread[node], false};
    return stat.value = compare.of_means(own, point, moment, means.mean.data() + (node - leaves) * means.d);
  }
};

// The clusters around one new point, from round to round.
template <class Near>
class Replay {
 public:
  using Stat = typename Near::Stat;
  struct Joined {
    std::int32_t node = -1, round = -1;
    double value = std::numeric_limits<double>::quiet_NaN();
  };

  Joined run(const Ancestry& tree, std::span<const float> limits, const Near& near,
             std::span<const std::int32_t> targets, std::span<const float> weights) {
    around_.clear();
    for (std::size_t e = 0; e < targets.size(); ++e)
      if (targets[e] >= 0) around_.push_back({targets[e], near.of(targets[e], weights[e])});
    unite();
    const auto end = static_cast<std::int32_t>(limits.size());
    for (std::int32_t first = 1; !around_.empty();) {
      Joined nearest;
      std::int32_t next = end;  // the round in which one of the clusters merges
      for (auto& [node, stat] : around_) {
        const double value = near.value(stat, node);
        if (nearest.node < 0 || value > nearest.value ||
            (value == nearest.value && tree.smallest[node] < tree.smallest[nearest.node]))
          nearest = {node, 0, value};
        if (tree.parent[node] >= 0) next = std::min(next, tree.round[tree.parent[node]]);
      }
      // What is around does not change until then, and limits only get farther: the first that is reached.
      const auto reached = std::partition_point(
          limits.begin() + (first - 1), limits.begin() + next,
          [value = static_cast<float>(nearest.value)](float limit) { return !(value >= limit); });
      if (reached != limits.begin() + next) {
        nearest.round = static_cast<std::int32_t>(reached - limits.begin()) + 1;
        return nearest;
      }
      if (next == end) break;
      for (auto& [node, stat] : around_)
        if (tree.parent[node] >= 0 && tree.round[tree.parent[node]] == next) node = tree.parent[node];
      unite();
      first = next + 1;
    }
    return {};
  }

 private:
  struct Around {
    std::int32_t node;
    Stat stat;
  };

  // Puts what is in one cluster together.
  void unite() {
    std::sort(around_.begin(), around_.end(),
              [](const Around& a, const Around& b) { return a.node < b.node; });
    std::size_t kept = 0;
    for (std::size_t e = 1; e < around_.size(); ++e) {
      if (around_[e].node == around_[kept].node)
        Near::combine(around_[kept].stat, around_[e].stat);
      else
        around_[++kept] = around_[e];
    }
    if (!around_.empty()) around_.resize(kept + 1);
  }

  std::vector<Around> around_;
};

// The edges of a new point: their weights, and the exponent of a power of two that they count as less than.
struct Row {
  std::span<const float> weights;
  int total;

  // Bits after the point such that sums of these weights are exact, or as fine as 62 bits allow.
  int shift() const {
    float largest = 0;
    for (const float weight : weights) largest = std::max(largest, std::fabs(weight));
    int exponent;
    std::frexp(largest, &exponent);
    return 62 - total - exponent;
  }
};

Row row_of(const Ancestry& tree, std::span<const std::int32_t> targets, std::span<const float> weights) {
  if (tree.weight.empty()) return {weights, static_cast<int>(std::bit_width(weights.size()))};
  double sum = 0;
  for (const std::int32_t leaf : targets)
    if (leaf >= 0) sum += tree.weight[leaf];
  int exponent;
  std::frexp(sum, &exponent);
  return {weights, exponent};
}

// Calls run(linkage_of), which makes the linkage for the edges of one point.
template <class Run>
void with_linkage(const Joining& joining, const Run& run) {
  const Kind kind = joining.kind;
  const auto missing = joining.missing;
  const bool weighed = !joining.weights.empty();
  switch (joining.linkage) {
    case Linkage::average:
      if (missing)
        return run([=](const Row& row) {
          const int counts = weighed ? 62 - row.total : 0;
          return CountedAverageLinkage<std::int64_t, false>(kind, *missing, row.shift(), counts);
        });
      return run([=](const Row& row) {
        const int counts = weighed ? 62 - row.total : 0;
        return CountedAverageLinkage<std::int64_t, true>(kind, 0, row.shift(), counts);
      });
    case Linkage::single:
      return run([=](const Row&) { return SingleLinkage(kind); });
    case Linkage::complete:
      if (missing) return run([=](const Row&) { return CompleteLinkage(kind, *missing); });
      return run([=](const Row&) { return PresentCompleteLinkage(kind); });
  }
  throw std::logic_error("unknown linkage");
}

// Replays the rounds for each new point by near_of(point, targets, weights).
template <class NearOf>
Attached replayed(const Ancestry& tree, const DirectedView& edges, std::span<const float> limits,
                  const NearOf& near_of, Team& team, const Report& report) {
  const std::int64_t n = edges.size();
  Attached result;
  result.node.resize(n);
  result.round.resize(n);
  result.value.resize(n);
  team.ranges(
      n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        Replay<decltype(near_of(0, {}, {}))> replay;
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t begin = edges.indptr[i], count = edges.indptr[i + 1] - begin;
          const auto weights = edges.weights.subspan(begin, count);
          const auto targets = edges.targets.subspan(begin, count);
          const auto joined = replay.run(tree, limits, near_of(i, targets, weights), targets, weights);
          result.node[i] = joined.node;
          result.round[i] = joined.round;
          result.value[i] = joined.value;
        }
      },
      report);
  return result;
}

using Targets = std::span<const std::int32_t>;
using Weights = std::span<const float>;

}  // namespace

Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const Joining& joining, Team& team, const Report& report) {
  const Ancestry tree(parent, size, round, leaves, joining.weights);
  Attached result;
  with_linkage(joining, [&](const auto& linkage_of) {
    const auto near_of = [&](std::int64_t, Targets targets, Weights weights) {
      return ByEdges<decltype(linkage_of({}))>{tree, linkage_of(row_of(tree, targets, weights))};
    };
    result = replayed(tree, edges, joining.limits, near_of, team, report);
  });
  return result;
}

Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const ByMeans& means, Team& team, const Report& report) {
  const Comparison compare(means.linkage, means.metric, means.d);
  const auto near_of = [&](std::int64_t i, Targets, Weights) {
    const float* point = means.points.data() + i * means.d;
    return ByMean{means, compare, leaves, point, {1, dot(point, point, means.d), 0, true}};
  };
  return replayed(Ancestry(parent, size, round, leaves, {}), edges, means.limits, near_of, team, report);
}

NodeMoments node_moments(std::span<const std::int32_t> parent, std::int64_t leaves, const Vectors& vectors) {
  const Ancestry tree(parent, {}, {}, leaves, {});
  const auto n = static_cast<Id>(parent.size());
  // Children, each under its smallest leaf, where the mean of the cluster is.
  std::vector<std::int64_t> first(n + 2, 0);
  for (const Id above : parent)
    if (above >= 0) ++first[above + 2];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Id> below(first.back());
  for (Id node = 0; node < n; ++node)
    if (parent[node] >= 0) below[first[parent[node] + 1]++] = tree.smallest[node];
  NodeMoments result{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n), {}};
  result.mean.reserve((n - leaves) * vectors.d);
  Moments moments(vectors, leaves);
  Moments::Scratch scratch;
  for (Id node = 0; node < n; ++node) {
    const auto parts = std::span(below).subspan(first[node], first[node + 1] - first[node]);
    if (node >= leaves) {
      std::sort(parts.begin(), parts.end());
      moments.merge(parts, scratch);
      result.mean.insert(result.mean.end(), scratch.mean.begin(), scratch.mean.end());
    }
    const Moment& moment = moments[tree.smallest[node]];
    result.weight[node] = moment.weight;
    result.square[node] = moment.square;
    result.spread[node] = moment.spread;
  }
  return result;
}

Neighbors closest(const DirectedView& rows, std::int64_t k, Kind kind, Team& team) {
  const std::int64_t n = rows.size();
  const float sign = kind == Kind::similarity ? -1.0f : 1.0f;
  Neighbors result{std::vector<std::int32_t>(n * k, -1), std::vector<float>(n * k, 0.0f)};
  team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<std::pair<float, std::int32_t>> row;
    for (std::int64_t i = first; i < last; ++i) {
      row.clear();
      for (std::int64_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e)
        if (rows.targets[e] >= 0 && rows.targets[e] != i)
          row.push_back({sign * rows.weights[e], rows.targets[e]});
      std::sort(row.begin(), row.end());
      std::int64_t slot = i * k;
      for (const auto& [weight, target] : row) {
        const auto own = result.indices.begin() + i * k, end = result.indices.begin() + slot;
        if (slot == (i + 1) * k) break;
        if (std::find(own, end, target) != end) continue;
        result.indices[slot] = target;
        result.values[slot++] = sign * weight;
      }
    }
  });
  return result;
}

}  // namespace agglo
