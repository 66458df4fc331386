// Who is nearest to whom, kept lazily.
//
// What is known of a cluster's neighbours comes from the last look at them: `best` was the nearest at
// `value`, and no other is or will be closer than `second`, because the linkages are reducible and what has
// no edge counts as `floor`. While `best` is unchanged and the only one so close, that is exact. If `best`
// has grown, or the cluster itself was merged, a bound is left; lists are read again only if that bound is
// close enough to matter. Merging clusters does not touch their lists: they are chained, and combined at the
// next look.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "neighbors/graph.hpp"
#include "rounds/adjacency.hpp"
#include "rounds/chains.hpp"
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/hub_hac.hpp"
#include "rounds/linkage.hpp"

namespace agglo {

template <class Linkage, class Size>
class LazyNeighborhoods final : public Neighborhoods<Size> {
 public:
  using Stat = typename Linkage::Stat;

  // With limits, only clusters that may be joined are neighbours. Bounds hold all the same: what may not be
  // joined with a part may not be joined with the whole.
  LazyNeighborhoods(const GraphView& graph, std::span<const double> weights, const Linkage& linkage,
                    const Limits* limits, int workers)
      : Neighborhoods<Size>(graph.size(), graph.indptr[graph.size()], weights, workers),
        graph_(graph),
        weights_(weights),
        linkage_(linkage),
        limits_(limits),
        slack_(1e-12 * (std::isfinite(linkage.floor) ? std::fabs(linkage.floor) : 0.0)),
        chains_(graph),
        gather_(workers) {}

  // What to start from if x is a cluster already: its size, and the statistics of its row of the graph.
  void start(Id x, Size size, const std::vector<Stat>& stats) {
    cell_[x].size = size;
    const Id* row = graph_.indices.data() + graph_.indptr[x];
    chains_.replace(x, List<Stat>({row, stats.size()}, stats));
    listed_ = true;
  }

  void first_look(Id x, int worker) override {
    if (listed_)
      look(x, gather_[worker]);
    else
      look_at_row(x);
  }

  void refresh(std::span<const Id> clusters, float threshold, int worker) override {
    std::vector<Id>& pending = gather_[worker].pending;
    pending.clear();
    std::int64_t read = static_cast<std::int64_t>(clusters.size());
    // What is known lies scattered in memory, and is asked for early.
    for (std::size_t k = 0; k < clusters.size(); ++k) {
      if (k + 16 < clusters.size()) prefetch(&nearest_[clusters[k + 16]]);
      if (k + 8 < clusters.size() && best(clusters[k + 8]) != kNobody)
        prefetch(&cell_[best(clusters[k + 8])]);
      if (!settled(clusters[k], threshold)) pending.push_back(clusters[k]);
    }
    for (std::size_t k = 0; k < pending.size(); ++k) {
      chains_.ask_ahead(pending, k, [this](Id name) { prefetch(&cell_[name]); });
      read += chains_.entries(pending[k]);
      look(pending[k], gather_[worker]);
    }
    work_[worker] += read;
  }

  void announce(std::span<const Id> clusters, int worker) override {
    for (const Id y : clusters) {
      const List<Stat>& list = chains_.list(y);
      work_[worker] += list.size();
      for (std::int64_t k = 0; k < list.size(); ++k) {
        const Id x = list.ids()[k];
        if (nearest_[x].lasting) continue;
        const double value = linkage_.value(list.stats()[k], cell_[y].size, cell_[x].size);
        if (Base::is_nearer(y, value, nearest_[x])) offers_[worker].push_back({x, y, value});
      }
    }
  }

  void finish(const std::function<void(std::span<const Merge>)>& record) override {
    HubHac<Linkage, Size> hac(linkage_, limits_);
    std::vector<Id> number(cell_.size(), kNobody);
    Id count = 0;
    for (Id x = 0; x < static_cast<Id>(cell_.size()); ++x) {
      if (!alive(x)) continue;
      hac.add(x, cell_[x].size);
      number[x] = count++;
    }
    Gather<Linkage>& gather = gather_.front();
    for (Id x = 0; x < static_cast<Id>(cell_.size()); ++x) {
      if (!alive(x)) continue;
      combine(x, gather);
      chains_.replace(x, {});
      for (std::size_t k = 0; k < gather.ids.size(); ++k)
        if (gather.ids[k] > x) hac.add_edge(number[x], number[gather.ids[k]], gather.stats[k]);
    }
    hac.run(record);
  }

  double take_in(Id cluster, std::span<const Part<Size>> parts) override {
    typename Linkage::Blend blend;
    for (const auto& [x, size] : parts) {
      const Nearest& nearest = nearest_[x];
      const bool inside = nearest.best != kNobody && root(nearest.best) == cluster;
      blend.add(inside ? double{nearest.second} : bound(x), size, linkage_.floor);
      if (x != cluster) chains_.append(cluster, x);
    }
    return raised(blend.of(cell_[cluster].size));
  }

 private:
  using Base = Neighborhoods<Size>;
  using Nearest = typename Base::Nearest;
  using Base::alive, Base::best, Base::cell_, Base::clusters_, Base::keep_bound, Base::nearest_,
      Base::offers_, Base::root, Base::work_;

  struct Search {
    explicit Search(double floor) : others(floor) {}
    void offer(Id candidate, double candidate_value) {
      ++number;
      if (candidate_value > value || (candidate_value == value && candidate < best)) {
        others = std::max(others, value);
        value = candidate_value;
        best = candidate;
      } else {
        others = std::max(others, candidate_value);
      }
    }
    Id best = kNobody;
    double value = kNone, others;
    std::int64_t number = 0;
  };

  void keep(Id x, const Search& found) {
    Nearest& nearest = nearest_[x];
    nearest.best = found.best;
    nearest.value = found.value;
    nearest.best_size = found.best == kNobody ? 0 : cell_[found.best].size;
    nearest.second = above(found.others);
    nearest.lasting =
        found.number == 1 || (Linkage::steadfast && limits_ == nullptr && nearest.second < nearest.value);
  }

  // A float that is no smaller, and larger by more than the rounding errors of a linkage's value: a neighbour
  // within them of the nearest may yet tie with it.
  float above(double bound) const {
    if (bound == kNone) return -std::numeric_limits<float>::infinity();
    return Base::round_up(bound + 2e-15 * std::fabs(bound) + 2e-3 * slack_);
  }

  // A bound made safe from the rounding errors of its own computation.
  double raised(double most) const { return most + slack_ + 1e-12 * std::fabs(most); }

  bool settled(Id x, float threshold) {
    if constexpr (Linkage::steadfast)
      if (nearest_[x].best != kNobody) nearest_[x].best = root(nearest_[x].best);
    if (exact(x)) return true;
    const double most = bound(x);
    if (static_cast<float>(most) >= threshold) return false;
    keep_bound(x, most);
    return true;
  }

  bool exact(Id x) {
    const Nearest& nearest = nearest_[x];
    const Id y = nearest.best;
    return y != kNobody && nearest.second < nearest.value && alive(y) &&
           (cell_[y].size == nearest.best_size || (Linkage::steadfast && may(x, y)));
  }

  bool may(Id x, Id y) const { return limits_ == nullptr || limits_->may(x, y); }

  // No neighbour of x is closer than this, given how `best` has grown.
  double bound(Id x) {
    const Nearest& nearest = nearest_[x];
    if (nearest.best == kNobody) return nearest.value;
    const double others = nearest.second;
    const Size size = cell_[root(nearest.best)].size;
    if (size == nearest.best_size) return std::max(nearest.value, others);
    return raised(std::max(linkage_.grown(nearest.value, others, nearest.best_size, size), others));
  }

  // The first look at a point: its row of the graph, each neighbour a cluster of one.
  void look_at_row(Id x) {
    Search search(linkage_.floor);
    const Limits* const limits = limits_;
    for (std::int64_t k = graph_.indptr[x]; k < graph_.indptr[x + 1]; ++k)
      if (limits == nullptr || limits->may(x, graph_.indices[k]))
        search.offer(graph_.indices[k], linkage_.value(edge(x, k), weight(x), weight(graph_.indices[k])));
    keep(x, search);
  }

  // Combines x's lists into one, under the present clusters.
  void combine(Id x, Gather<Linkage>& gather) {
    gather.start(std::min(chains_.entries(x), clusters_));
    for (Id owner = x; owner != kNobody; owner = chains_.next(owner)) {
      const std::span<const Id> names = chains_.names(owner);
      if (const auto& list = chains_.list(owner))
        read(x, names, gather, [stats = list.stats()](std::size_t k) { return stats[k]; });
      else
        read(x, names, gather,
             [this, owner, first = graph_.indptr[owner]](std::size_t k) { return edge(owner, first + k); });
    }
    if (limits_ != nullptr) gather.keep([&](Id y) { return limits_->may(x, y); });
  }

  // Combines x's lists, and finds its nearest neighbour.
  void look(Id x, Gather<Linkage>& gather) {
    combine(x, gather);
    Search search(linkage_.floor);
    const double size = cell_[x].size;
    for (std::size_t k = 0; k < gather.ids.size(); ++k)
      search.offer(gather.ids[k], linkage_.value(gather.stats[k], size, cell_[gather.ids[k]].size));
    keep(x, search);

    if (!chains_.bare(x)) chains_.replace(x, List<Stat>(gather.ids, gather.stats));
  }

  // Points weigh 1 unless the engine is one for weights.
  static constexpr bool kWeighed = std::is_same_v<Size, double> && Weighing<Linkage>;
  double weight(Id point) const { return kWeighed ? static_cast<double>(cell_[point].size) : 1.0; }

  // Entry k of the graph, which is in the row of `owner`.
  Stat edge(Id owner, std::int64_t k) const {
    if constexpr (kWeighed)
      if (!weights_.empty())
        return linkage_.of(graph_.weights[k], weights_[owner] * weights_[graph_.indices[k]]);
    return linkage_.of(graph_.weights[k]);
  }

  template <class StatAt>
  void read(Id x, std::span<const Id> names, Gather<Linkage>& gather, const StatAt& stat) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (k + chains_.kNames < names.size()) prefetch(&cell_[names[k + chains_.kNames]]);
      const Id id = root(names[k]);
      if (id != x) gather.add(id, stat(k));
    }
  }

  const GraphView graph_;
  const std::span<const double> weights_;  // of the points; empty: 1 each
  const Linkage linkage_;
  const Limits* const limits_;
  const double slack_;
  bool listed_ = false;  // whether clusters to start from have lists already

  Chains<Stat> chains_;

  std::vector<Gather<Linkage>> gather_;  // by worker
};

}  // namespace agglo
