// The clusters of a run and their nearest neighbours. All reducible linkages share this code.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/disjoint_set.hpp"
#include "base/memory.hpp"
#include "rounds/linkage.hpp"
#include "rounds/tie_breaking.hpp"

namespace agglo {

// The id and the size of a cluster that has become part of a merged cluster.
template <class Size>
struct Part {
  Id id;
  Size size;
};

// Returns the smallest float that is not smaller than `value`.
inline float round_up(double value) {
  const auto rounded = static_cast<float>(value);
  return rounded < value ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
}

// The part of LazyNeighbors that does not depend on the linkage, as a base class.
//
// The engine calls only this base class, so the engine is compiled once for all linkages.
// The virtual calls take little time, because each call does much work or handles many clusters.
//
// Number is the type of cluster sizes. If the size of a cluster is its number of points, Number is Id.
// For weighted points and initial clusters, Number is double. Integers up to 2^53 are exact in double.
template <class Number>
class ClusterNeighbors {
 public:
  static constexpr bool kEager = false;
  using Size = Number;
  using Bound = double;  // an upper bound on the linkage of a merged cluster to any neighbour

  virtual ~ClusterNeighbors() = default;

  // Returns the nearest neighbour of x that the last search found, or kNoCluster if it is not known.
  // After `refresh`, best(x) is the true nearest neighbour if value(x) reaches the threshold.
  Id best(Id x) const { return nearest_[x].best; }

  // Returns the linkage of x and best(x).
  // If best(x) is not known, returns an upper bound on the linkage of x to any neighbour.
  double value(Id x) const { return nearest_[x].value; }

  // Returns whether the nearest neighbour of x remains the nearest after any merge of that neighbour.
  bool nearest_is_final(Id x) const { return nearest_[x].is_final; }
  Id nearest(Id x) { return nearest_is_final(x) ? root(best(x)) : best(x); }

  // Returns an upper bound on the linkage of x to any neighbour. The bound stays valid when neighbours merge.
  double upper_bound(Id x) const {
    const Nearest& nearest = nearest_[x];
    return nearest.best == kNoCluster ? nearest.value : std::max(nearest.value, double{nearest.second});
  }

  Size size(Id x) const { return nodes_[x].size; }
  bool is_cluster(Id x) { return std::atomic_ref<Id>(nodes_[x].parent).load(std::memory_order_relaxed) == x; }

  // Returns the cluster that contains point i. Inlined, because searches call it for every list entry.
  [[gnu::always_inline]] Id root(Id i) {
    return find_root(i, [this](Id j) -> Id& { return nodes_[j].parent; });
  }

  // ---- searching ----

  virtual void find_initial_nearest(Id x, int worker) = 0;

  // Updates the nearest neighbours of `clusters`.
  // If an upper bound shows that the linkages of a cluster do not reach `threshold`, only this bound is
  // stored. Otherwise the stored nearest neighbour is exact afterwards.
  virtual void refresh(std::span<const Id> clusters, float threshold, int worker) = 0;

  // Finds all clusters whose new nearest neighbour is one of the merged `clusters`.
  // Before, the caller must have called `refresh` for the merged clusters.
  virtual void push_to_neighbors(std::span<const Id> clusters, int worker) = 0;

  // Stores the new nearest neighbours that push_to_neighbors has found.
  // Calls body(x) for every cluster x with a new nearest neighbour, possibly several times.
  template <class Body>
  void apply_pushed(const Body& body) {
    for (std::vector<Push>& pushes : pushes_)
      for (const Push& push : std::exchange(pushes, {})) {
        Nearest& nearest = nearest_[push.to];
        if (!is_nearer(push.value, push.cluster, nearest.value, nearest.best)) continue;
        nearest.second = std::max(nearest.second, round_up(nearest.value));
        nearest.value = push.value;
        nearest.best = push.cluster;
        nearest.best_size = nodes_[push.cluster].size;
        nearest.is_final = false;
        body(push.to);
      }
  }

  // ---- hubs ----

  // Returns whether so many list entries have been read that the graph must have hubs.
  // On a graph without hubs, HAC with average linkage reads each list entry about three times.
  bool has_hubs() const {
    constexpr std::int64_t kMaxReads = 8;  // maximum number of reads per graph entry
    return std::accumulate(reads_.begin(), reads_.end(), std::int64_t{0}) > kMaxReads * entries_;
  }

  // Runs the remaining rounds of HAC with the class HubHac, which is faster on graphs with hubs.
  // Calls record(merges) once per round. The merges of a round are sorted by cluster id.
  // No other function of this object may be called afterwards.
  virtual void run_hub_hac(const std::function<void(std::span<const Merge>)>& record) = 0;

  // ---- merging: a round calls the numbered functions in order, each for all merges before the next ----

  // 1. Merges the clusters of x and y in the union-find.
  void merge_ids(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) nodes_[std::max(a, b)].parent = std::min(a, b);
  }

  // 2. Sets the size of a merged cluster.
  void resize(Id cluster, Size size) { nodes_[cluster].size = size; }

  // 3. Appends the neighbour lists of the parts (the clusters that merged) to the lists of the merged
  //    cluster.
  // Returns an upper bound on the linkage of the merged cluster to any neighbour.
  virtual Bound absorb_lists(Id cluster, std::span<const Part<Size>> parts) = 0;

  // 4. Stores the upper bound on the linkage of the merged cluster to any neighbour.
  // The nearest neighbour of the merged cluster stays unknown until the next search.
  void finish_merge(Id cluster, Bound bound) {
    set_bound(cluster, bound);
    --clusters_;
  }

 protected:
  struct Node {
    Id parent;  // parent of the point in the union-find (the root is the smallest point)
    Size size;  // size of the cluster (only valid for the root)
  };

  struct Nearest {
    double value = kNoLinkage;
    Id best = kNoCluster;
    Size best_size = 0;  // size of `best` at the last search
    // An upper bound on the linkage to all neighbours except `best`.
    float second = -std::numeric_limits<float>::infinity();
    bool is_final = false;  // whether `best` remains the nearest neighbour, even after `best` merges
  };

  // The message that the merged cluster `cluster` may be the new nearest neighbour of cluster `to`.
  struct Push {
    Id to, cluster;
    double value;
  };

  ClusterNeighbors(std::int64_t n, std::int64_t edges, std::span<const double> weights, int n_threads)
      : entries_(n + edges), clusters_(n), nodes_(n), nearest_(n), pushes_(n_threads), reads_(n_threads) {
    for (Id i = 0; i < clusters_; ++i)
      nodes_[i] = {i, weights.empty() ? Size{1} : static_cast<Size>(weights[i])};
  }

  void set_bound(Id x, double bound) {
    nearest_[x].best = kNoCluster;
    nearest_[x].value = bound;
    nearest_[x].is_final = false;
  }

  const std::int64_t entries_;  // number of points plus number of graph entries

  std::int64_t clusters_;  // at least the number of clusters, so no combined neighbour list is longer

  Array<Node> nodes_;       // indexed by point
  Array<Nearest> nearest_;  // indexed by cluster

  std::vector<std::vector<Push>> pushes_;  // indexed by thread
  std::vector<std::int64_t> reads_;        // number of list entries and clusters read by each thread
};

}  // namespace agglo
