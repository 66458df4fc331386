// HAC on graphs with hubs. A hub has so many neighbours that reading its neighbour list is slow.
//
// All edges between two clusters are combined into one edge. Both clusters store this edge in their lists.
// When two clusters merge, the edges of the cluster with fewer neighbours move to the other cluster.
// Because of this small-to-large merging, each edge moves only O(log n) times.
// The neighbours of a hub are sorted by linkage.
//
// When a round selects its merges, all nearest neighbours are exact, except those of deferred clusters (see
// below). A cluster is stale if its nearest neighbour must be searched again. A cluster becomes stale in
// these cases:
//  1. The cluster has merged, or its edges to a neighbour have changed.
//  2. The nearest neighbour of the cluster has grown so much that another neighbour may be closer.
//  3. A rival of the cluster has got a smaller id, or the linkage to the rival may have increased.
//     A rival is a neighbour that may be as close as the nearest neighbour, now or after the rival has grown.
//  4. The cluster is a hub, and the size or the id of a neighbour has changed.
//  5. Constraints no longer allow the cluster to merge with its nearest neighbour.
//
// If a round does not need the nearest neighbour of a stale cluster, the search for it is deferred.
// A cluster is deferred if all its neighbours are hubs, and it is the nearest neighbour of none of them.
// Hubs are never deferred, so a deferred cluster has no deferred neighbour.
// So a deferred cluster can merge only after a hub has found it as its nearest neighbour.
//
// Each cluster has heaps of the clusters that may become stale when this cluster merges.
// So a merge reads only the clusters that may become stale, instead of all neighbours.
// This saves time if all linkages are equal: then a merge of a hub leaves most nearest neighbours unchanged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "rounds/constraints.hpp"
#include "rounds/hub_list.hpp"
#include "rounds/linkage.hpp"
#include "rounds/tie_breaking.hpp"

namespace agglo {

template <class Linkage>
class HubHac {
 public:
  using Stat = typename Linkage::Stat;

  // If `constraints` is null, any two clusters may merge.
  HubHac(const Linkage& linkage, const ConstraintTracker* constraints)
      : linkage_(linkage), is_gradual_(linkage.growth() == Growth::gradual), constraints_(constraints) {}

  // Adds a cluster. The k-th call adds cluster number k, counted from 0.
  void add(Id id, double size) {
    Cluster& cluster = clusters_.emplace_back();
    cluster.id = id;
    cluster.size = size;
    cluster.has_conflicts = constraints_ != nullptr && constraints_->has_conflicts(id);
    sizes_.total += size;
    while (std::fmod(size, sizes_.unit) != 0) sizes_.unit /= 2;
  }

  // Adds an edge between clusters number x and y. `stat` has the statistics of all edges between x and y.
  void add_edge(Id x, Id y, const Stat& stat) {
    add_to_list(x, y, stat);
    add_to_list(y, x, stat);
  }

  // Merges mutual nearest neighbours, round by round, until no such pair is left.
  // Calls record(merges) once per round. The merges of a round are sorted by cluster id.
  // The function `record` must report the merges to the constraint tracker.
  template <class Record>
  void run(const Record& record) {
    for (Id x = 0; x < static_cast<Id>(clusters_.size()); ++x) mark_stale(x);
    std::vector<std::pair<Id, Id>> pairs;
    std::vector<Merge> merges;
    do {
      pairs.clear();
      merges.clear();
      std::vector<Id> stale = std::exchange(stale_, {});
      for (std::size_t k = 0; k < stale.size(); ++k) {
        Cluster& cluster = clusters_[stale[k]];
        cluster.is_stale = false;
        if (cluster.is_alive) find_nearest(stale[k]);
        if (cluster.nearest != kNoCluster && std::exchange(clusters_[cluster.nearest].is_deferred, false))
          stale.push_back(cluster.nearest);
      }
      for (const Id x : stale) {
        const Id y = clusters_[x].nearest;
        if (!clusters_[x].is_alive || y == kNoCluster || clusters_[y].nearest != x) continue;
        if (clusters_[x].is_merging) continue;  // the pair (y, x) has been added already
        clusters_[x].is_merging = clusters_[y].is_merging = true;
        pairs.emplace_back(x, y);
      }
      const auto low = [&](const std::pair<Id, Id>& pair) {
        return std::min(clusters_[pair.first].id, clusters_[pair.second].id);
      };
      std::sort(pairs.begin(), pairs.end(), [&](const auto& p, const auto& q) { return low(p) < low(q); });
      for (const auto& [x, y] : pairs) {
        const auto [first, last] = std::minmax(clusters_[x].id, clusters_[y].id);
        merges.push_back({first, last, clusters_[x].value});
      }
      if (!merges.empty()) record(std::span<const Merge>(merges));
      for (const auto& [x, y] : pairs) degree(x) < degree(y) ? merge(y, x) : merge(x, y);
    } while (!pairs.empty());
  }

 private:
  static constexpr std::size_t kMaxEdges = 32;  // a cluster with more neighbours becomes a hub
  static constexpr double kRounding = 1e-14;    // larger than the relative rounding error of a linkage
  // The key of heap entries that must be checked after every merge of the cluster that has the heap.
  static constexpr double kAlways = std::numeric_limits<double>::infinity();

  struct Edge {
    Id to;
    Stat stat;
  };

  using Hub = HubList<Stat>;
  using Entry = typename Hub::Entry;

  // An entry in a heap of some cluster y: `cluster` is a neighbour of y and may become stale when y merges.
  struct Watch {
    double key;  // the heap has the largest key on top
    Id cluster;
    // The number of searches of `cluster` at insertion. A later search makes the entry void.
    std::uint32_t searches;
    bool operator<(const Watch& other) const { return key < other.key; }
  };
  using Heap = std::vector<Watch>;

  struct Cluster {
    Id id = kNoCluster;
    double size = 0;
    Id nearest = kNoCluster;
    double value = kNoLinkage;   // linkage to `nearest`
    std::uint32_t searches = 0;  // number of searches so far
    Id pointers = 0;             // number of clusters whose last search found this cluster as the nearest
    bool is_alive = true, is_stale = false, is_merging = false;
    bool is_deferred = false;    // stale, but the search is deferred
    bool has_conflicts = false;  // whether cannot-link pairs or groups forbid some merges
    std::vector<Edge> edges;     // the edges to all neighbours; empty if the cluster is a hub
    std::unique_ptr<Hub> hub;    // the edges to all neighbours of a hub; null if the cluster is no hub
    std::vector<Id> hubs;        // the neighbours that are hubs; may contain duplicates and former neighbours
    // Clusters for which this cluster ties with their nearest neighbour: both have the same linkage to them.
    // The key is the id of that nearest neighbour, or infinity if every merge may change the linkage.
    Heap rivals;
    // Clusters to which this cluster may become as close as their nearest neighbour already is. This can
    // happen only if the size of this cluster is above -key.
    Heap rising;
    // Three heaps of the clusters whose nearest neighbour is this cluster. When this cluster merges, the
    // entries of a heap are checked for one reason:
    Heap watchers;  // another neighbour may be closer if this cluster is larger than -key
    Heap heavy;  // the merge of the pair may exceed the maximum weight (key: the weight of the other cluster)
    Heap conflicting;  // cannot-link pairs or groups may forbid the merge of the pair; the key is unused
  };

  void mark_stale(Id x) {
    Cluster& cluster = clusters_[x];
    if (std::exchange(cluster.is_stale, true)) return;
    const auto is_hub = [&](const Edge& edge) { return clusters_[edge.to].hub != nullptr; };
    cluster.is_deferred = cluster.pointers == 0 && !cluster.hub && !cluster.edges.empty() &&
                          std::all_of(cluster.edges.begin(), cluster.edges.end(), is_hub);
    if (!cluster.is_deferred) stale_.push_back(x);
  }

  // Adds x to one of the heaps of its neighbour y. If the heap is too long, removes its void entries first
  // (see is_void).
  void watch(Id x, Id y, Heap& heap, double key) {
    if (heap.size() > 2 * degree(y) + kMaxEdges) {
      std::erase_if(heap, [&](const Watch& watch) { return is_void(watch); });
      std::make_heap(heap.begin(), heap.end());
    }
    heap.push_back({key, x, clusters_[x].searches});
    std::push_heap(heap.begin(), heap.end());
  }

  // Removes entries from the top of the heap as long as is_due(entry) is true.
  // Calls check(x) for the cluster x of each removed entry. Void entries (see is_void) are removed without a
  // call.
  template <class IsDue, class Check>
  void pop_due(Heap& heap, const IsDue& is_due, const Check& check) {
    std::vector<Id> due;  // check() is called at the end, because it may insert into the heap
    for (; !heap.empty() && (is_void(heap.front()) || is_due(heap.front())); heap.pop_back()) {
      if (!is_void(heap.front())) due.push_back(heap.front().cluster);
      std::pop_heap(heap.begin(), heap.end());
    }
    for (const Id x : due) check(x);
  }

  // Returns whether a heap entry must be ignored, because its cluster has been searched again or is stale.
  bool is_void(const Watch& watch) const {
    const Cluster& cluster = clusters_[watch.cluster];
    return cluster.searches != watch.searches || cluster.is_stale;
  }

  bool allows(Id x, Id y) const {
    return constraints_ == nullptr || constraints_->allows(clusters_[x].id, clusters_[y].id);
  }

  // ---- edges ----

  std::size_t degree(Id x) const {
    return clusters_[x].hub ? clusters_[x].hub->size() : clusters_[x].edges.size();
  }

  auto find_edge(Id x, Id y) {
    std::vector<Edge>& edges = clusters_[x].edges;
    return std::find_if(edges.begin(), edges.end(), [&](const Edge& edge) { return edge.to == y; });
  }

  Entry make_entry(Id x, Id y, const Stat& stat) const {
    const Cluster& neighbor = clusters_[y];
    const double own = is_gradual_ ? 1.0 : clusters_[x].size;
    return {linkage_.value(stat, own, neighbor.size), neighbor.size, stat, neighbor.id, y};
  }

  // Adds an edge to y to the list of x. If the list already has an edge to y, combines the two edges.
  void add_to_list(Id x, Id y, const Stat& stat) {
    if (clusters_[x].hub) {
      Hub& hub = *clusters_[x].hub;
      const Entry* entry = hub.find(y);
      if (entry == nullptr) {
        hub.put(make_entry(x, y, stat));
        clusters_[y].hubs.push_back(x);
        return;
      }
      Stat combined = entry->stat;
      Linkage::combine(combined, stat);
      return hub.put(make_entry(x, y, combined));
    }
    const auto found = find_edge(x, y);
    if (found != clusters_[x].edges.end()) return Linkage::combine(found->stat, stat);
    clusters_[x].edges.push_back({y, stat});
    if (clusters_[x].edges.size() > kMaxEdges) make_hub(x);
  }

  void make_hub(Id x) {
    const std::vector<Edge> edges = std::exchange(clusters_[x].edges, {});
    clusters_[x].hub = std::make_unique<Hub>(is_gradual_);
    for (const Edge& edge : edges) add_to_list(x, edge.to, edge.stat);
  }

  void remove_from_list(Id x, Id y) {
    if (clusters_[x].hub) return clusters_[x].hub->erase(y);
    *find_edge(x, y) = clusters_[x].edges.back();
    clusters_[x].edges.pop_back();
  }

  void remove_edge(Id x, Id y) {
    remove_from_list(x, y);
    remove_from_list(y, x);
  }

  // Updates the entry of y in the list of hub x. Returns false if x is no hub or y is no neighbour of x.
  bool update_entry(Id x, Id y) {
    const Entry* entry = clusters_[x].hub ? clusters_[x].hub->find(y) : nullptr;
    if (entry != nullptr) clusters_[x].hub->put(make_entry(x, y, entry->stat));
    return entry != nullptr;
  }

  // ---- merging ----

  // Merges b into a. Cluster a must have at least as many neighbours as b.
  void merge(Id a, Id b) {
    remove_edge(a, b);
    const bool id_changed = clusters_[b].id < clusters_[a].id;
    clusters_[a].size += clusters_[b].size;
    clusters_[a].id = std::min(clusters_[a].id, clusters_[b].id);
    clusters_[a].is_merging = false;
    const Cluster merged = std::exchange(clusters_[b], {});
    clusters_[b].is_alive = false;
    clusters_[b].is_stale = merged.is_stale;
    clusters_[b].pointers = merged.pointers;
    --clusters_[a].pointers;  // b pointed to a as its nearest neighbour
    const auto move_edge = [&](Id x, const Stat& stat) {
      remove_from_list(x, b);
      add_edge(x, a, stat);
      mark_stale(x);
    };
    for (const Edge& edge : merged.edges) move_edge(edge.to, edge.stat);
    if (merged.hub)
      for (const Entry& entry : merged.hub->order()) move_edge(entry.to, entry.stat);

    Cluster& cluster = clusters_[a];
    cluster.hubs.insert(cluster.hubs.end(), merged.hubs.begin(), merged.hubs.end());
    if (id_changed || constraints_ != nullptr || linkage_.growth() != Growth::none) {
      std::sort(cluster.hubs.begin(), cluster.hubs.end());
      cluster.hubs.erase(std::unique(cluster.hubs.begin(), cluster.hubs.end()), cluster.hubs.end());
      std::erase_if(cluster.hubs, [&](Id x) { return !update_entry(x, a); });
      for (const Id x : cluster.hubs) mark_stale(x);
    }
    cluster.has_conflicts |= merged.has_conflicts;
    if (id_changed || is_gradual_) update_rivals(a);
    update_watchers(a, merged.has_conflicts);
    mark_stale(a);
  }

  // After a merge of cluster a: marks as stale each cluster that is now closer to its rival a than to its
  // nearest neighbour. A checked cluster that is not stale returns to a heap of a.
  void update_rivals(Id a) {
    const auto check = [&](Id x) {
      Cluster& cluster = clusters_[x];
      cluster.value = value(x, cluster.nearest);  // the nearest neighbour may have grown since the search
      if (is_nearer(value(x, a), clusters_[a].id, cluster.value, clusters_[cluster.nearest].id))
        mark_stale(x);
      else
        watch_rival(x, *find_edge(x, a));
    };
    pop_due(clusters_[a].rivals, [&](const Watch& rival) { return rival.key > clusters_[a].id; }, check);
    pop_due(clusters_[a].rising, [&](const Watch& rival) { return -rival.key < clusters_[a].size; }, check);
  }

  // After a merge of cluster a: marks as stale each cluster whose nearest neighbour was a and may now be
  // another cluster. `new_conflicts` says whether the cluster that merged into a had conflicts.
  void update_watchers(Id a, bool new_conflicts) {
    Cluster& cluster = clusters_[a];
    const auto mark = [&](Id x) { mark_stale(x); };
    pop_due(cluster.watchers, [&](const Watch& watch) { return -watch.key < cluster.size; }, mark);
    pop_due(cluster.heavy, [&](const Watch& watch) { return !allows(watch.cluster, a); }, mark);
    if (!new_conflicts) return;
    for (const Watch& watch : cluster.conflicting)
      if (!is_void(watch) && !allows(watch.cluster, a)) mark_stale(watch.cluster);
  }

  // Returns the linkage of x and its neighbour y. x must not be a hub.
  double value(Id x, Id y) {
    return linkage_.value(find_edge(x, y)->stat, clusters_[x].size, clusters_[y].size);
  }

  // ---- searching ----

  void find_nearest(Id x) {
    Cluster& cluster = clusters_[x];
    ++cluster.searches;
    if (cluster.nearest != kNoCluster) --clusters_[cluster.nearest].pointers;
    cluster.nearest = kNoCluster;
    cluster.value = kNoLinkage;
    if (cluster.hub)
      find_nearest_of_hub(x);
    else
      find_nearest_in_edges(x);
    if (cluster.nearest != kNoCluster) ++clusters_[cluster.nearest].pointers;
  }

  void offer(Cluster& cluster, Id y, double value) const {
    const Id nearest = cluster.nearest == kNoCluster ? kNoCluster : clusters_[cluster.nearest].id;
    if (!is_nearer(value, clusters_[y].id, cluster.value, nearest)) return;
    cluster.nearest = y;
    cluster.value = value;
  }

  // Returns an upper bound on the rounding error of a linkage near `value`.
  double rounding(double value) const {
    return kRounding * (std::fabs(value) + (is_gradual_ ? std::fabs(linkage_.floor) : 0.0));
  }

  void find_nearest_of_hub(Id x) {
    Cluster& cluster = clusters_[x];
    const double size = cluster.size;
    const auto& order = cluster.hub->order();
    while (!order.empty()) {
      const Entry first = *order.begin();
      const double value = linkage_.value(first.stat, size, first.size);
      if (!allows(x, first.to)) {
        remove_edge(x, first.to);
      } else if (linkage_.growth() == Growth::once && value != first.key) {
        update_entry(x, first.to);
      } else {
        offer(cluster, first.to, value);
        break;
      }
    }
    if (!is_gradual_ || order.empty()) return;
    // Because of rounding, the entry with the largest key may not have the largest linkage.
    // So all entries whose keys are nearly as large are read.
    const double least = order.begin()->key - size * rounding(cluster.value);
    for (auto it = order.begin(); it != order.end() && it->key >= least;) {
      if (!allows(x, it->to)) {
        const Id y = it->to;
        ++it;
        remove_edge(x, y);
        continue;
      }
      offer(cluster, it->to, linkage_.value(it->stat, size, it->size));
      // Skip the other entries with the same size and statistics. They have the same linkage and larger ids.
      Entry last = *it;
      last.id = std::numeric_limits<Id>::max();
      it = order.upper_bound(last);
    }
  }

  void find_nearest_in_edges(Id x) {
    Cluster& cluster = clusters_[x];
    const double size = cluster.size;
    if (constraints_ != nullptr)
      for (std::size_t k = cluster.edges.size(); k-- > 0;)
        if (!allows(x, cluster.edges[k].to)) remove_edge(x, cluster.edges[k].to);
    const auto value_of = [&](const Edge& edge) {
      return linkage_.value(edge.stat, size, clusters_[edge.to].size);
    };
    for (const Edge& edge : cluster.edges) offer(cluster, edge.to, value_of(edge));
    if (cluster.edges.size() < 2) return;  // a single neighbour is always the nearest

    double others = is_rising(cluster) ? kNoLinkage : growth_limit();
    const Stat* nearest = nullptr;
    for (const Edge& edge : cluster.edges) {
      if (edge.to == cluster.nearest) {
        nearest = &edge.stat;
        continue;
      }
      others = std::max(others, value_of(edge));
      watch_rival(x, edge);
    }
    watch_nearest(x, *nearest, others);
    if (constraints_ != nullptr) watch_constraints(x);
  }

  // Returns the limit that linkages cannot cross when a neighbour grows without new edges.
  double growth_limit() const { return is_gradual_ ? linkage_.floor : kNoLinkage; }

  // Returns whether the linkage to the nearest neighbour rises when that neighbour grows.
  // In this case, the linkage to any other neighbour also rises when that other neighbour grows.
  bool is_rising(const Cluster& cluster) const {
    return is_gradual_ && cluster.value + rounding(cluster.value) < growth_limit();
  }

  // Returns the size up to which a neighbour can grow before its linkage to a cluster of size a crosses
  // `limit`. `size` is the current size of the neighbour. The linkage must be gradual (see Growth).
  double last_size(const Stat& stat, double a, double size, double limit) const {
    if constexpr (requires { linkage_.size_at(stat, a, limit); })
      return std::max(size, linkage_.size_at(stat, a, limit));
    else
      return size;
  }

  bool is_constant(Id x, const Edge& edge) const {
    return linkage_.is_constant(edge.stat, clusters_[x].size, clusters_[edge.to].size, sizes_);
  }

  // If merges may make the neighbour edge.to the nearest neighbour of x, adds x to one of the heaps of
  // edge.to.
  void watch_rival(Id x, const Edge& edge) {
    const Cluster& cluster = clusters_[x];
    Cluster& rival = clusters_[edge.to];
    const double least = cluster.value - (is_gradual_ ? rounding(cluster.value) : 0.0);
    if (linkage_.value(edge.stat, cluster.size, rival.size) < least) {
      if (is_rising(cluster)) {
        const double last = last_size(edge.stat, cluster.size, rival.size, least);
        if (last < sizes_.total) watch(x, edge.to, rival.rising, -last);
        return;
      }
      if (growth_limit() < least) return;
    }
    const double key = !is_gradual_ || is_constant(x, edge) ? clusters_[cluster.nearest].id : kAlways;
    watch(x, edge.to, rival.rivals, key);
  }

  // Let y be the nearest neighbour of x. Adds x to those heaps of y that list the clusters to check again,
  // because constraints may come to forbid their merge with y.
  void watch_constraints(Id x) {
    const Cluster& cluster = clusters_[x];
    Cluster& nearest = clusters_[cluster.nearest];
    if (constraints_->has_max_weight())
      watch(x, cluster.nearest, nearest.heavy, constraints_->weight(cluster.id));
    if (cluster.has_conflicts) watch(x, cluster.nearest, nearest.conflicting, 0);
  }

  // Adds x to the heap `watchers` of the nearest neighbour of x.
  // The key is minus the largest size at which this neighbour certainly remains the nearest.
  // `others` is an upper bound on the linkage of x to all its other neighbours.
  void watch_nearest(Id x, const Stat& stat, double others) {
    const Cluster& cluster = clusters_[x];
    Cluster& nearest = clusters_[cluster.nearest];
    if (linkage_.is_constant(stat, cluster.size, nearest.size, sizes_)) return;
    double holds = nearest.size;
    if (is_gradual_) {
      const double least = others + rounding(others);
      if (linkage_.value(stat, cluster.size, holds) > least)
        holds = is_rising(cluster) ? sizes_.total : last_size(stat, cluster.size, holds, least);
      if (holds >= sizes_.total) return;
    }
    watch(x, cluster.nearest, nearest.watchers, -holds);
  }

  const Linkage linkage_;
  const bool is_gradual_;
  const ConstraintTracker* const constraints_;
  std::vector<Cluster> clusters_;
  SizeRange sizes_;  // the range of sizes of all clusters that the run can create
  std::vector<Id> stale_;
};

}  // namespace agglo
