#include "tree/attach.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "rounds/linkage.hpp"

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

// The cluster that a new point joins, in which round, and how close it is; -1 if there is none.
struct Joined {
  std::int32_t node = -1, round = -1;
  double value = std::numeric_limits<double>::quiet_NaN();
};

// The clusters around one new point, from round to round.
template <class Near>
class Replay {
 public:
  using Stat = typename Near::Stat;

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

// Replays the rounds for one new point.
template <class Near>
Joined join(const Ancestry& tree, std::span<const float> limits, const Near& near,
            std::span<const std::int32_t> targets, std::span<const float> weights) {
  thread_local Replay<Near> replay;  // whose memory serves many points
  return replay.run(tree, limits, near, targets, weights);
}

// How the weights of a new point's edges are summed: see Grid in src/agglo/linkage.py.
struct RowGrid {
  int shift, count_shift;
  bool is_long;  // 64 bits are too few for exact sums
};

RowGrid grid_of(const Ancestry& tree, std::span<const std::int32_t> targets, std::span<const float> weights) {
  const auto exponent_of = [](double value) {
    int exponent;
    std::frexp(value, &exponent);
    return exponent;
  };
  const bool weighed = !tree.weight.empty();
  int total = static_cast<int>(std::bit_width(weights.size())), one = 0;
  if (weighed) {
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
  return {shift + (is_long ? 64 * (static_cast<int>(Int384::kLimbs) - 1) : 0), weighed ? room : 0, is_long};
}

// Calls run(linkage) with the linkage for the edges of one point.
template <class Sum, class Run>
auto with_average(const Joining& joining, const RowGrid& grid, const Run& run) {
  if (joining.missing)
    return run(
        CountedAverageLinkage<Sum, false>(joining.kind, *joining.missing, grid.shift, grid.count_shift));
  return run(CountedAverageLinkage<Sum, true>(joining.kind, 0, grid.shift, grid.count_shift));
}

template <class Run>
auto with_linkage(const Ancestry& tree, const Joining& joining, std::span<const std::int32_t> targets,
                  std::span<const float> weights, const Run& run) {
  const auto missing = joining.missing;
  switch (joining.linkage) {
    case Linkage::average: {
      const RowGrid grid = grid_of(tree, targets, weights);
      if (grid.is_long) return with_average<Int384>(joining, grid, run);
      return with_average<std::int64_t>(joining, grid, run);
    }
    case Linkage::single:
      return run(SingleLinkage(joining.kind));
    case Linkage::complete:
      if (missing) return run(CompleteLinkage(joining.kind, *missing));
      return run(PresentCompleteLinkage(joining.kind));
  }
  throw std::logic_error("unknown linkage");
}

// Joins each new point where replay(point, targets, weights) says.
template <class Replay>
Attached replayed(const DirectedView& edges, const Replay& replay, ThreadPool& pool, const Report& report) {
  const std::int64_t n = edges.size();
  Attached result;
  result.node.resize(n);
  result.round.resize(n);
  result.value.resize(n);
  pool.ranges(
      n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t begin = edges.indptr[i], count = edges.indptr[i + 1] - begin;
          const Joined joined =
              replay(i, edges.targets.subspan(begin, count), edges.weights.subspan(begin, count));
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
                  const Joining& joining, ThreadPool& pool, const Report& report) {
  const Ancestry tree(parent, size, round, leaves, joining.weights);
  const auto replay = [&](std::int64_t, Targets targets, Weights weights) {
    return with_linkage(tree, joining, targets, weights, [&]<class Linkage>(const Linkage& linkage) {
      return join(tree, joining.limits, ByEdges<Linkage>{tree, linkage}, targets, weights);
    });
  };
  return replayed(edges, replay, pool, report);
}

Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const ByMeans& means, ThreadPool& pool, const Report& report) {
  const Comparison compare(means.linkage, means.metric, means.d);
  const Ancestry tree(parent, size, round, leaves, {});
  const auto replay = [&](std::int64_t i, Targets targets, Weights weights) {
    const float* point = means.points.data() + i * means.d;
    const ByMean near{means, compare, leaves, point, {1, dot(point, point, means.d), 0, true}};
    return join(tree, means.limits, near, targets, weights);
  };
  return replayed(edges, replay, pool, report);
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

}  // namespace agglo
