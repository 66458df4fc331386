// Nearest neighbours of clusters for reducible linkages, updated lazily.
//
// The last search of a cluster stored three results:
//  - `best`: the nearest neighbour;
//  - `value`: the linkage to `best`;
//  - `second`: an upper bound on the linkage to all other neighbours.
//
// The bound `second` stays valid after merges of neighbours, because the linkage is reducible.
// Average linkage with `missing` rises towards the value `missing` when a neighbour grows.
// So `second` is never stored below this value.
// If `best` has not merged and `value` is larger than `second`, `best` is still the nearest neighbour.
// If the cluster or its neighbour `best` has merged, only an upper bound on the cluster's linkages is known.
// The neighbour lists of a cluster are read again only if this upper bound reaches the threshold.
// A merge only links the neighbour lists of the merging clusters into a chain. The next search combines them.
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
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/hub_hac.hpp"
#include "rounds/linkage.hpp"
#include "rounds/neighbor_lists.hpp"
#include "rounds/tie_breaking.hpp"

namespace agglo {

template <class Linkage, class Size>
class LazyNeighbors final : public ClusterNeighbors<Size> {
 public:
  using Stat = typename Linkage::Stat;

  // Two clusters that constraints forbid to merge are not treated as neighbours.
  // If a cluster may not merge with cluster y, it may not merge with any union that contains y. So merges
  // never allow new neighbours, and upper bounds stay valid.
  LazyNeighbors(const GraphView& graph, std::span<const double> weights, const Linkage& linkage,
                const ConstraintTracker* constraints, int n_threads)
      : ClusterNeighbors<Size>(graph.size(), graph.indptr[graph.size()], weights, n_threads),
        graph_(graph),
        weights_(weights),
        linkage_(linkage),
        constraints_(constraints),
        slack_(1e-12 * (std::isfinite(linkage.floor) ? std::fabs(linkage.floor) : 0.0)),
        chains_(graph),
        tables_(n_threads) {}

  // Sets the size of initial cluster x. `stats` has the edge statistics for each entry of row x of the graph.
  void set_initial_cluster(Id x, Size size, const std::vector<Stat>& stats) {
    nodes_[x].size = size;
    const Id* row = graph_.indices.data() + graph_.indptr[x];
    chains_.replace(x, NeighborList<Stat>({row, stats.size()}, stats));
    has_initial_clusters_ = true;
  }

  void find_initial_nearest(Id x, int worker) override {
    if (has_initial_clusters_)
      find_nearest(x, tables_[worker]);
    else
      find_nearest_in_row(x);
  }

  void refresh(std::span<const Id> clusters, float threshold, int worker) override {
    std::vector<Id>& pending = tables_[worker].pending;
    pending.clear();
    std::int64_t reads = static_cast<std::int64_t>(clusters.size());
    // The data of the clusters is scattered in memory, so it is prefetched.
    for (std::size_t k = 0; k < clusters.size(); ++k) {
      if (k + 16 < clusters.size()) prefetch(&nearest_[clusters[k + 16]]);
      if (k + 8 < clusters.size() && best(clusters[k + 8]) != kNoCluster)
        prefetch(&nodes_[best(clusters[k + 8])]);
      if (!refresh_without_search(clusters[k], threshold)) pending.push_back(clusters[k]);
    }
    for (std::size_t k = 0; k < pending.size(); ++k) {
      chains_.prefetch_ahead(pending, k, [this](Id id) { prefetch(&nodes_[id]); });
      reads += chains_.count_entries(pending[k]);
      find_nearest(pending[k], tables_[worker]);
    }
    reads_[worker] += reads;
  }

  void push_to_neighbors(std::span<const Id> clusters, int worker) override {
    for (const Id y : clusters) {
      const NeighborList<Stat>& list = chains_.list(y);
      reads_[worker] += list.size();
      for (std::int64_t k = 0; k < list.size(); ++k) {
        const Id x = list.ids()[k];
        if (nearest_[x].is_final) continue;
        const double value = linkage_.value(list.stats()[k], nodes_[y].size, nodes_[x].size);
        if (is_nearer(value, y, nearest_[x].value, nearest_[x].best))
          pushes_[worker].push_back({x, y, value});
      }
    }
  }

  void run_hub_hac(const std::function<void(std::span<const Merge>)>& record) override {
    HubHac<Linkage> hac(linkage_, constraints_);
    std::vector<Id> index(nodes_.size(), kNoCluster);
    Id count = 0;
    for (Id x = 0; x < static_cast<Id>(nodes_.size()); ++x) {
      if (!is_cluster(x)) continue;
      hac.add(x, nodes_[x].size);
      index[x] = count++;
    }
    NeighborTable<Linkage>& table = tables_.front();
    for (Id x = 0; x < static_cast<Id>(nodes_.size()); ++x) {
      if (!is_cluster(x)) continue;
      combine_lists(x, table);
      chains_.replace(x, {});
      for (std::size_t k = 0; k < table.ids.size(); ++k)
        if (table.ids[k] > x) hac.add_edge(index[x], index[table.ids[k]], table.stats[k]);
    }
    hac.run(record);
  }

  double absorb_lists(Id cluster, std::span<const Part<Size>> parts) override {
    UnionBound bound(linkage_.bound_rule());
    for (const auto& [x, size] : parts) {
      const Nearest& nearest = nearest_[x];
      const bool best_is_inside = nearest.best != kNoCluster && root(nearest.best) == cluster;
      bound.add(best_is_inside ? double{nearest.second} : current_bound(x), size, linkage_.floor);
      if (x != cluster) chains_.append(cluster, x);
    }
    return add_slack(bound.get(nodes_[cluster].size));
  }

 private:
  using Base = ClusterNeighbors<Size>;
  using Nearest = typename Base::Nearest;
  using Base::best, Base::clusters_, Base::is_cluster, Base::nearest_, Base::nodes_, Base::pushes_,
      Base::reads_, Base::root, Base::set_bound;

  // The nearest of all candidates offered so far, and an upper bound on the linkage to the other candidates.
  struct Search {
    explicit Search(double floor) : others(floor) {}
    void offer(Id candidate, double candidate_value) {
      ++count;
      // This condition repeats is_nearer(). A call of is_nearer() makes single linkage slower by a sixth.
      if (candidate_value > value || (candidate_value == value && candidate < best)) {
        others = std::max(others, value);
        value = candidate_value;
        best = candidate;
      } else {
        others = std::max(others, candidate_value);
      }
    }
    Id best = kNoCluster;
    double value = kNoLinkage, others;
    std::int64_t count = 0;
  };

  void store(Id x, const Search& search) {
    Nearest& nearest = nearest_[x];
    nearest.best = search.best;
    nearest.value = search.value;
    nearest.best_size = search.best == kNoCluster ? 0 : nodes_[search.best].size;
    nearest.second = round_up_with_errors(search.others);
    nearest.is_final = search.count == 1 || (linkage_.is_growth_invariant() && constraints_ == nullptr &&
                                             nearest.second < nearest.value);
  }

  // Returns a float that exceeds `bound` by more than the rounding error of a linkage.
  // Without this margin, rounding could hide a neighbour that is as close as the nearest neighbour.
  float round_up_with_errors(double bound) const {
    if (bound == kNoLinkage) return -std::numeric_limits<float>::infinity();
    return round_up(bound + 2e-15 * std::fabs(bound) + 2e-3 * slack_);
  }

  // Returns `bound` plus a margin for the rounding errors in the computation of `bound`.
  double add_slack(double bound) const { return bound + slack_ + 1e-12 * std::fabs(bound); }

  // Tries to update the nearest neighbour of x without reading neighbour lists. Returns whether this
  // succeeded. It succeeds if the stored neighbour is exact, or if an upper bound shows that x does not reach
  // `threshold`.
  bool refresh_without_search(Id x, float threshold) {
    if (linkage_.is_growth_invariant())
      if (nearest_[x].best != kNoCluster) nearest_[x].best = root(nearest_[x].best);
    if (is_exact(x)) return true;
    const double bound = current_bound(x);
    if (static_cast<float>(bound) >= threshold) return false;
    set_bound(x, bound);
    return true;
  }

  bool is_exact(Id x) {
    const Nearest& nearest = nearest_[x];
    const Id y = nearest.best;
    return y != kNoCluster && nearest.second < nearest.value && is_cluster(y) &&
           (nodes_[y].size == nearest.best_size || (linkage_.is_growth_invariant() && allows(x, y)));
  }

  bool allows(Id x, Id y) const { return constraints_ == nullptr || constraints_->allows(x, y); }

  // Returns an upper bound on the linkage of x to any neighbour. The bound is valid even if the stored
  // nearest neighbour `best` has grown.
  double current_bound(Id x) {
    const Nearest& nearest = nearest_[x];
    if (nearest.best == kNoCluster) return nearest.value;
    const double others = nearest.second;
    const Size size = nodes_[root(nearest.best)].size;
    if (size == nearest.best_size) return std::max(nearest.value, others);
    return add_slack(
        std::max(linkage_.bound_after_growth(nearest.value, others, nearest.best_size, size), others));
  }

  // Finds the nearest neighbour of point x in row x of the graph. Call it only before the first merge.
  void find_nearest_in_row(Id x) {
    Search search(linkage_.floor);
    const ConstraintTracker* const constraints = constraints_;
    for (std::int64_t k = graph_.indptr[x]; k < graph_.indptr[x + 1]; ++k)
      if (constraints == nullptr || constraints->allows(x, graph_.indices[k]))
        search.offer(graph_.indices[k],
                     linkage_.value(edge_stat(x, k), weight(x), weight(graph_.indices[k])));
    store(x, search);
  }

  // Combines all neighbour lists of x in `table`, which then has one entry per neighbouring cluster.
  void combine_lists(Id x, NeighborTable<Linkage>& table) {
    table.reset(std::min(chains_.count_entries(x), clusters_));
    for (Id owner = x; owner != kNoCluster; owner = chains_.next(owner)) {
      const std::span<const Id> ids = chains_.ids(owner);
      if (const auto& list = chains_.list(owner))
        add_list(x, ids, table, [stats = list.stats()](std::size_t k) { return stats[k]; });
      else
        add_list(x, ids, table, [this, owner, first = graph_.indptr[owner]](std::size_t k) {
          return edge_stat(owner, first + k);
        });
    }
    if (constraints_ != nullptr) table.filter([&](Id y) { return constraints_->allows(x, y); });
  }

  // Combines all neighbour lists of x into one list, and finds the nearest neighbour of x.
  void find_nearest(Id x, NeighborTable<Linkage>& table) {
    combine_lists(x, table);
    Search search(linkage_.floor);
    const double size = nodes_[x].size;
    for (std::size_t k = 0; k < table.ids.size(); ++k)
      search.offer(table.ids[k], linkage_.value(table.stats[k], size, nodes_[table.ids[k]].size));
    store(x, search);

    if (!chains_.is_graph_row(x)) chains_.replace(x, NeighborList<Stat>(table.ids, table.stats));
  }

  static constexpr bool kWeighted = std::is_same_v<Size, double> && UsesPointWeights<Linkage>;
  double weight(Id point) const { return kWeighted ? static_cast<double>(nodes_[point].size) : 1.0; }

  // Returns the statistics of graph entry k, which is in the row of point `owner`.
  Stat edge_stat(Id owner, std::int64_t k) const {
    if constexpr (kWeighted)
      if (!weights_.empty())
        return linkage_.stat(graph_.weights[k], weights_[owner] * weights_[graph_.indices[k]]);
    return linkage_.stat(graph_.weights[k]);
  }

  template <class StatAt>
  void add_list(Id x, std::span<const Id> ids, NeighborTable<Linkage>& table, const StatAt& stat) {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (k + chains_.kPrefetch < ids.size()) prefetch(&nodes_[ids[k + chains_.kPrefetch]]);
      const Id id = root(ids[k]);
      if (id != x) table.add(id, stat(k));
    }
  }

  const GraphView graph_;
  const std::span<const double> weights_;  // weights of the points (if empty, each is 1)
  const Linkage linkage_;
  const ConstraintTracker* const constraints_;  // if null, any two clusters may merge
  const double slack_;                          // margin for rounding errors of linkages near `floor`
  bool has_initial_clusters_ = false;

  ListChains<Stat> chains_;

  std::vector<NeighborTable<Linkage>> tables_;  // indexed by thread
};

}  // namespace agglo
