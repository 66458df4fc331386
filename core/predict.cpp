#include "predict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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

// The clusters around one new point, from round to round.
template <class Linkage>
class Replay {
 public:
  using Stat = typename Linkage::Stat;
  struct Joined {
    std::int32_t node = -1, round = -1;
    double value = std::numeric_limits<double>::quiet_NaN();
  };

  Joined run(const Ancestry& tree, std::span<const float> limits, const Linkage& linkage,
             std::span<const std::int32_t> targets, std::span<const float> weights) {
    around_.clear();
    for (std::size_t e = 0; e < targets.size(); ++e)
      if (targets[e] >= 0) around_.push_back({targets[e], edge(tree, linkage, targets[e], weights[e])});
    unite();
    const auto end = static_cast<std::int32_t>(limits.size());
    for (std::int32_t first = 1; !around_.empty();) {
      Joined nearest;
      std::int32_t next = end;  // the round in which one of the clusters merges
      for (const auto& [node, stat] : around_) {
        const double value = linkage.value(stat, 1, tree.mass(node));
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

  static Stat edge(const Ancestry& tree, const Linkage& linkage, std::int32_t leaf, float weight) {
    if constexpr (Weighing<Linkage>)
      if (!tree.weight.empty()) return linkage.of(weight, tree.weight[leaf]);
    return linkage.of(weight);
  }

  // Puts what is in one cluster together.
  void unite() {
    std::sort(around_.begin(), around_.end(),
              [](const Around& a, const Around& b) { return a.node < b.node; });
    std::size_t kept = 0;
    for (std::size_t e = 1; e < around_.size(); ++e) {
      if (around_[e].node == around_[kept].node)
        Linkage::combine(around_[kept].stat, around_[e].stat);
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

}  // namespace

Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const Joining& joining, Team& team, const Report& report) {
  const Ancestry tree(parent, size, round, leaves, joining.weights);
  const std::int64_t n = edges.size();
  Attached result;
  result.node.resize(n);
  result.round.resize(n);
  result.value.resize(n);
  with_linkage(joining, [&](const auto& linkage_of) {
    team.ranges(
        n, kRows,
        [&](std::int64_t first, std::int64_t last, int) {
          Replay<decltype(linkage_of({}))> replay;
          for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t begin = edges.indptr[i], count = edges.indptr[i + 1] - begin;
            const auto weights = edges.weights.subspan(begin, count);
            const auto targets = edges.targets.subspan(begin, count);
            const auto joined = replay.run(tree, joining.limits, linkage_of(row_of(tree, targets, weights)),
                                           targets, weights);
            result.node[i] = joined.node;
            result.round[i] = joined.round;
            result.value[i] = joined.value;
          }
        },
        report);
  });
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
