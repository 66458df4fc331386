// The clusters of a run and the nearest neighbour of each, as far as all reducible linkages share them.
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
#include "rounds/adjacency.hpp"
#include "rounds/linkage.hpp"

namespace agglo {

// A part of a merged cluster: the cluster that it was.
template <class Size>
struct Part {
  Id id;
  Size size;
};

// A merge of two clusters, by id, and their linkage.
struct Merge {
  Id low, high;
  double value;
};

// Returns the smallest float that is not smaller than `value`.
inline float round_up(double value) {
  const auto rounded = static_cast<float>(value);
  return rounded < value ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
}

// The interface of LazyNeighbors that does not depend on the linkage. A virtual call handles many clusters,
// or one that needs much work, so the engine is compiled once for all linkages.
//
// Number is the type of cluster sizes: Id for numbers of points; double, which is exact up to 2^53, for
// points with weights and for initial clusters.
template <class Number>
class ClusterNeighbors {
 public:
  static constexpr bool kEager = false;
  using Size = Number;
  using UnionBound = double;  // no neighbour of a merged cluster is closer than this

  virtual ~ClusterNeighbors() = default;

  // The nearest neighbour found by the last search. It is exact after `refresh`, unless `value` is beyond the
  // threshold.
  Id best(Id x) const { return nearest_[x].best; }        // kNoCluster: not known
  double value(Id x) const { return nearest_[x].value; }  // linkage to `best`; without one, an upper bound

  // Returns whether the nearest neighbour of x stays the nearest, whatever it merges with.
  bool nearest_is_final(Id x) const { return nearest_[x].is_final; }
  Id nearest(Id x) { return nearest_is_final(x) ? root(best(x)) : best(x); }

  // No neighbour of x is or will be closer than this.
  double upper_bound(Id x) const {
    const Nearest& nearest = nearest_[x];
    return nearest.best == kNoCluster ? nearest.value : std::max(nearest.value, double{nearest.second});
  }

  Size size(Id x) const { return nodes_[x].size; }
  bool is_cluster(Id x) { return std::atomic_ref<Id>(nodes_[x].parent).load(std::memory_order_relaxed) == x; }

  // The cluster that contains i. It is looked up for every neighbour that is read, so it is inlined.
  [[gnu::always_inline]] Id root(Id i) {
    return find_root(i, [this](Id j) -> Id& { return nodes_[j].parent; });
  }

  // ---- searching ----

  virtual void find_initial_nearest(Id x, int worker) = 0;

  // Makes the nearest neighbours of clusters exact. Where an upper bound shows that a cluster does not reach
  // `threshold`, it stores the bound instead and reads no list.
  virtual void refresh(std::span<const Id> clusters, float threshold, int worker) = 0;

  // Finds the clusters whose nearest neighbour is now one of these merged clusters. All merged clusters must
  // have been refreshed since their merge.
  virtual void push_to_neighbors(std::span<const Id> clusters, int worker) = 0;

  // Applies what push_to_neighbors has found. Calls body(x) for clusters with a new nearest neighbour, some
  // of them more than once.
  template <class Body>
  void apply_pushed(const Body& body) {
    for (std::vector<Push>& pushes : pushes_)
      for (const Push& push : std::exchange(pushes, {})) {
        Nearest& nearest = nearest_[push.to];
        if (!is_nearer(push.cluster, push.value, nearest)) continue;
        nearest.second = std::max(nearest.second, round_up(nearest.value));
        nearest.value = push.value;
        nearest.best = push.cluster;
        nearest.best_size = nodes_[push.cluster].size;
        nearest.is_final = false;
        body(push.to);
      }
  }

  // ---- hubs ----

  // Returns whether so many list entries and clusters have been read that there must be hubs. HAC with
  // average linkage on an ordinary neighbour graph reads about three times the entries of the graph.
  bool has_hubs() const {
    constexpr std::int64_t kMaxReads = 8;  // per entry of the graph
    return std::accumulate(reads_.begin(), reads_.end(), std::int64_t{0}) > kMaxReads * entries_;
  }

  // Runs the remaining rounds of HAC with a structure for hubs (see HubHac). Calls record(merges) for every
  // round, ordered by id. Nothing else may be called afterwards.
  virtual void run_hub_hac(const std::function<void(std::span<const Merge>)>& record) = 0;

  // ---- merging: in each round, all calls of one function precede those of the next ----

  // 1. Merges the clusters of x and y in the union-find.
  void merge_ids(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) nodes_[std::max(a, b)].parent = std::min(a, b);
  }

  // 2. Sets the size of a merged cluster.
  void resize(Id cluster, Size size) { nodes_[cluster].size = size; }

  // 3. Appends the lists of its parts to a merged cluster, and bounds its linkage to any neighbour.
  virtual UnionBound absorb_lists(Id cluster, std::span<const Part<Size>> parts) = 0;

  // 4. Replaces what is known of the neighbours of a merged cluster by that bound.
  void finish_merge(Id cluster, UnionBound bound) {
    set_bound(cluster, bound);
    --clusters_;
  }

 protected:
  struct Node {
    Id parent;  // in the union-find; the root of a cluster is its smallest point
    Size size;  // of the cluster; valid for its root only
  };

  struct Nearest {
    double value = kNoLinkage;
    Id best = kNoCluster;
    Size best_size = 0;                                      // size of `best` at the last search
    float second = -std::numeric_limits<float>::infinity();  // no other neighbour is closer
    bool is_final = false;  // `best` stays the nearest, whatever it merges with
  };

  // A merged cluster that may be the new nearest neighbour of cluster `to`.
  struct Push {
    Id to, cluster;
    double value;
  };

  static bool is_nearer(Id cluster, double value, const Nearest& than) {
    return value > than.value || (value == than.value && cluster < than.best);
  }

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

  const std::int64_t entries_;  // points and entries of the graph

  std::int64_t clusters_;  // an upper bound on their number, and so on the length of a combined list

  Array<Node> nodes_;       // by point
  Array<Nearest> nearest_;  // by cluster

  std::vector<std::vector<Push>> pushes_;  // by thread
  std::vector<std::int64_t> reads_;        // by thread: list entries and clusters read so far
};

}  // namespace agglo
