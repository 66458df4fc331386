// Nearest neighbours of clusters for vector linkages, updated eagerly.
//
// Vector linkages are not reducible: a merged cluster may be closer to a third cluster than its parts were.
// So the stored bounds of the third cluster are not valid after the merge.
// Therefore a merged cluster is compared with all its neighbours immediately after the merge.
// Each neighbour receives its linkage to the merged cluster and updates its own nearest neighbour.
//
// Each cluster stores three results of its last search:
//  - `best`: the closest neighbour found;
//  - `value`: the linkage to `best`;
//  - `second`: an upper bound on the linkage to all other neighbours.
// If `value` is larger than `second`, then `best` is the nearest neighbour.
// Otherwise the neighbour lists are read again as soon as `value` or `second` reaches the threshold.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/disjoint_set.hpp"
#include "base/memory.hpp"
#include "neighbors/graph.hpp"
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/linkage.hpp"
#include "rounds/moments.hpp"
#include "rounds/neighbor_lists.hpp"
#include "rounds/tie_breaking.hpp"

namespace agglo {

class EagerNeighbors {
 public:
  static constexpr bool kEager = true;
  using Size = double;
  struct Bound {};  // empty: a merged cluster is compared with all neighbours, so it needs no bound

  EagerNeighbors(const GraphView& graph, const Vectors& vectors, const ConstraintTracker* constraints,
                 int n_threads)
      : graph_(graph),
        constraints_(constraints),
        clusters_(graph.size()),
        moments_(vectors, graph.size()),
        nodes_(graph.size()),
        nearest_(graph.size()),
        chains_(graph),
        locks_(kLocks),
        scratch_(n_threads) {
    for (Id i = 0; i < clusters_; ++i) nodes_[i].parent = i;
  }

  Id best(Id x) const { return nearest_[x].best; }
  Id nearest(Id x) const { return best(x); }
  bool nearest_is_final(Id) const { return false; }
  double value(Id x) const { return nearest_[x].value; }
  double upper_bound(Id x) const { return std::max(nearest_[x].value, double{nearest_[x].second}); }
  Size size(Id x) const { return moments_.weight(x); }
  bool is_cluster(Id x) { return std::atomic_ref<Id>(nodes_[x].parent).load(std::memory_order_relaxed) == x; }

  void prefetch_cluster(Id x) const {
    moments_.prefetch_cluster(x);
    prefetch(&nearest_[x]);
  }

  // Returns the cluster that contains point i.
  Id root(Id i) {
    return find_root(i, [this](Id j) -> Id& { return nodes_[j].parent; });
  }

  // Finds the nearest neighbour of x in row x of the graph. x is a point or an initial cluster.
  void find_initial_nearest(Id x, int) {
    const std::span<const Id> ids = chains_.ids(x);
    const float* weights = graph_.weights.data() + graph_.indptr[x];
    Nearest found;
    for (const Id y : ids) moments_.prefetch_moment(y);
    for (std::size_t k = 0; k < ids.size(); ++k)
      if (allows(x, ids[k])) offer(found, ids[k], moments_.value(x, ids[k], weights[k]));
    nearest_[x] = found;
  }

  // Updates the nearest neighbours of `clusters`.
  // After this call, the nearest neighbour of a cluster is exact if the linkage to it may reach `threshold`.
  void refresh(std::span<const Id> clusters, float threshold, int worker) {
    std::vector<Id>& pending = scratch_[worker].table.pending;
    pending.clear();
    for (const Id x : clusters) {
      const Nearest& nearest = nearest_[x];
      const bool is_exact = nearest.best != kNoCluster && nearest.second < nearest.value;
      if (!is_exact && static_cast<float>(upper_bound(x)) >= threshold) pending.push_back(x);
    }
    for (std::size_t k = 0; k < pending.size(); ++k) {
      prefetch_ahead(pending, k);
      find_nearest(pending[k], scratch_[worker], round_ - 1);
    }
  }

  // ---- merging: a round makes all calls of function 1, then all calls of function 2, and so on ----

  // 1. Merges the clusters of x and y in the union-find.
  void merge_ids(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) nodes_[std::max(a, b)].parent = std::min(a, b);
  }

  // 2. Computes the moments of a merged cluster.
  template <class Parts>
  void merge_moments(Id cluster, const Parts& parts, int worker) {
    std::vector<Id>& ids = scratch_[worker].ids;
    ids.clear();
    for (const auto& part : parts) ids.push_back(part.id);
    std::sort(ids.begin(), ids.end());
    moments_.merge(ids, scratch_[worker].moments);
    nodes_[cluster].merge_round = round_;
  }

  // 3. Appends the neighbour lists of x to the neighbour lists of a merged cluster.
  void append_lists(Id cluster, Id x) { chains_.append(cluster, x); }

  // 4. Compares merged clusters with all their neighbours.
  // Neighbours that have not merged in this round update their own nearest neighbour.
  void push_to_neighbors(std::span<const Id> clusters, int worker) {
    const NeighborTable<Edge>& table = scratch_[worker].table;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      prefetch_ahead(clusters, c);
      find_nearest(clusters[c], scratch_[worker], round_);
      for (std::size_t k = 0; k < table.ids.size(); ++k)
        if (!merged_now(table.ids[k])) receive(table.ids[k], clusters[c], table.stats[k], worker);
    }
  }

  // 5. Updates the number of clusters after a merge.
  void finish_merge(Id, Bound) { --clusters_; }

  // 6. Ends a round. Calls body(x) for every cluster x whose new nearest neighbour may be a merged cluster.
  // The function body(x) may be called several times for the same x.
  template <class Body>
  void end_round(const Body& body) {
    ++round_;
    for (Scratch& scratch : scratch_)
      for (const Id x : std::exchange(scratch.closer, {})) body(x);
  }

 private:
  static constexpr std::size_t kLocks = 4096;
  // When a neighbour is read, the mean of the neighbour 4 positions later is prefetched.
  static constexpr std::size_t kPrefetch = 4;

  // The statistic of an edge is the linkage of its two clusters, or NaN if the linkage must be computed.
  // combine() does nothing, because the linkage to a merged neighbour is computed from the means.
  struct Edge {
    using Stat = double;
    static void combine(Stat&, Stat) {}
  };

  struct Nearest {
    double value = kNoLinkage;
    Id best = kNoCluster;
    float second = -std::numeric_limits<float>::infinity();
    Id receive_round = 0;  // the last round in which receive() was called for this cluster
    Id list_round = 0;     // the last round whose merges the stored neighbour list includes
  };

  struct Node {
    Id parent;           // parent of the point in the union-find (the root is the smallest point)
    Id merge_round = 0;  // the last round in which the cluster merged (only valid for the root)
  };

  // The scratch memory of one thread.
  struct Scratch {
    NeighborTable<Edge> table;
    std::vector<Id> ids, closer;
    Moments::Scratch moments;
  };

  struct Lock {
    void lock() {
      while (taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() { taken.clear(std::memory_order_release); }
    std::atomic_flag taken;
  };

  bool merged_now(Id x) const { return nodes_[x].merge_round == round_; }
  bool allows(Id x, Id y) const { return constraints_ == nullptr || constraints_->allows(x, y); }

  // Updates `best`, `value` and `second` of `nearest` with a candidate.
  // The result does not depend on the order of the candidates.
  static void offer(Nearest& nearest, Id candidate, double value) {
    const bool closer = is_nearer(value, candidate, nearest.value, nearest.best);
    const double other = closer ? nearest.value : value;
    if (other > nearest.second) nearest.second = round_up(other);
    if (closer) nearest.value = value, nearest.best = candidate;
  }

  // Updates the nearest neighbour of x after a merge. `value` is the linkage of x to the merged cluster.
  void receive(Id x, Id cluster, double value, int worker) {
    const std::lock_guard guard(locks_[x % kLocks]);
    Nearest& nearest = nearest_[x];
    // If the old nearest neighbour has merged, the first call for x in this round removes it.
    if (std::exchange(nearest.receive_round, round_) != round_ && nearest.best != kNoCluster &&
        (!is_cluster(nearest.best) || merged_now(nearest.best))) {
      nearest.best = kNoCluster;
      nearest.value = kNoLinkage;
    }
    if (value == kNoLinkage) return;
    if (value >= upper_bound(x)) scratch_[worker].closer.push_back(x);
    offer(nearest, cluster, value);
  }

  // Combines the neighbour lists of x into one list, and finds the nearest neighbour of x.
  // The combined list includes all merges up to round number `round`.
  void find_nearest(Id x, Scratch& scratch, Id round) {
    NeighborTable<Edge>& table = scratch.table;
    table.reset(std::min(chains_.count_entries(x), clusters_));
    for (Id owner = x; owner != kNoCluster; owner = chains_.next(owner)) add_list(x, owner, table);
    Nearest found;
    found.list_round = round;
    for (std::size_t k = 0; k < table.ids.size(); ++k) {
      if (k + kPrefetch < table.ids.size()) prefetch_cluster(table.ids[k + kPrefetch]);
      const Id y = table.ids[k];
      double& value = table.stats[k];
      if (!allows(x, y))
        value = kNoLinkage;
      else if (std::isnan(value))
        value = moments_.value(x, y);
      if (value != kNoLinkage) offer(found, y, value);
    }
    nearest_[x] = found;
    chains_.replace(x, NeighborList<double>(table.ids, table.stats));
  }

  // Adds the neighbour list of `owner` to the hash table of the neighbours of x.
  // A stored linkage is reused if neither of its two clusters has merged since it was computed.
  void add_list(Id x, Id owner, NeighborTable<Edge>& table) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    const std::span<const Id> ids = chains_.ids(owner);
    const NeighborList<double>& list = chains_.list(owner);
    const bool unchanged = !merged_now(x) && owner == x;
    const Id list_round = nearest_[x].list_round;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (k + chains_.kPrefetch < ids.size()) prefetch(&nodes_[ids[k + chains_.kPrefetch]]);
      const Id id = root(ids[k]);
      if (id == x) continue;
      if (table.ids.size() < kPrefetch) prefetch_cluster(id);
      if (!unchanged || id != ids[k] || nodes_[id].merge_round > list_round)
        table.add(id, kUnknown);
      else
        table.add(id, list ? list.stats()[k] : moments_.value(x, id, graph_.weights[graph_.indptr[x] + k]));
    }
  }

  void prefetch_ahead(std::span<const Id> clusters, std::size_t k) const {
    chains_.prefetch_ahead(clusters, k, [this](Id id) { prefetch(&nodes_[id]); });
    if (k + 2 < clusters.size()) prefetch_cluster(clusters[k + 2]);
  }

  const GraphView graph_;
  const ConstraintTracker* const constraints_;  // if null, any two clusters may merge
  std::int64_t clusters_;                       // upper bound on the number of clusters
  Moments moments_;
  Id round_ = 1;

  Array<Node> nodes_;       // indexed by point
  Array<Nearest> nearest_;  // indexed by cluster
  ListChains<double> chains_;

  std::vector<Lock> locks_;
  std::vector<Scratch> scratch_;  // indexed by thread
};

}  // namespace agglo
