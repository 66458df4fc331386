// The clusters and who is nearest to whom, as far as that is no matter of the linkage.
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

#include "base/memory.hpp"
#include "rounds/adjacency.hpp"
#include "rounds/linkage.hpp"

namespace agglo {

// A cluster that goes into a new one.
template <class Size>
struct Part {
  Id member;
  Size size;
};

// Two clusters that merge, by id, and their linkage.
struct Merge {
  Id low, high;
  double value;
};

// Size is a whole number where clusters are made of points, and a double, which holds larger ones and exactly
// up to 2^53, where they are made of other clusters or of points with weights.
//
// What linkages do differently is called for many clusters, or much work, at a time; so the rounds are the
// same code for all of them.
template <class Number>
class Neighborhoods {
 public:
  static constexpr bool kEager = false;
  using Size = Number;
  using Blend = double;  // a bound: no neighbour of a new cluster is closer

  virtual ~Neighborhoods() = default;

  // What was found at the last look: exact after `refresh`, unless `value` is beyond its threshold.
  Id best(Id x) const { return nearest_[x].best; }        // nobody: not known
  double value(Id x) const { return nearest_[x].value; }  // of `best`; if there is none, a bound on any

  // Whether the nearest neighbour of x stays the nearest, whatever it merges with.
  bool has_found_nearest(Id x) const { return nearest_[x].lasting; }
  Id nearest(Id x) { return has_found_nearest(x) ? root(best(x)) : best(x); }

  // No neighbour of x is or will be closer than this, as far as the last look tells.
  double reach(Id x) const {
    const Nearest& nearest = nearest_[x];
    return nearest.best == kNobody ? nearest.value : std::max(nearest.value, double{nearest.second});
  }

  Size size(Id x) const { return cell_[x].size; }
  bool alive(Id x) { return std::atomic_ref<Id>(cell_[x].up).load(std::memory_order_relaxed) == x; }

  // The cluster that i is in now. Asked for every neighbour of every list that is read, so no call.
  [[gnu::always_inline]] Id root(Id i) {
    // Threads shorten paths under each other's feet; any ancestor they see or leave is a right one.
    const auto up = [this](Id j) { return std::atomic_ref<Id>(cell_[j].up); };
    for (Id parent = up(i).load(std::memory_order_relaxed); parent != i;) {
      const Id above = up(parent).load(std::memory_order_relaxed);
      if (above != parent) up(i).store(above, std::memory_order_relaxed);
      i = parent;
      parent = above;
    }
    return i;
  }

  // ---- looking ----

  virtual void first_look(Id x, int worker) = 0;

  // Makes the nearest neighbours of clusters exact, or finds bounds beyond `threshold` without reading lists.
  virtual void refresh(std::span<const Id> clusters, float threshold, int worker) = 0;

  // Finds the neighbours of new clusters that have one of these for their nearest neighbour now. All of the
  // new clusters must have been refreshed since they were made.
  virtual void announce(std::span<const Id> clusters, int worker) = 0;

  // Makes known what has been announced. Calls body(x) for clusters that have another nearest neighbour now,
  // perhaps repeatedly.
  template <class Body>
  void each_announced(const Body& body) {
    for (std::vector<Offer>& offers : offers_)
      for (const Offer& offer : std::exchange(offers, {})) {
        Nearest& nearest = nearest_[offer.to];
        if (!is_nearer(offer.cluster, offer.value, nearest)) continue;
        nearest.second = std::max(nearest.second, round_up(nearest.value));
        nearest.value = offer.value;
        nearest.best = offer.cluster;
        nearest.best_size = cell_[offer.cluster].size;
        nearest.lasting = false;
        body(offer.to);
      }
  }

  // ---- hubs ----

  // Whether so many list entries and clusters have been read that there must be hubs. HAC by average linkage
  // on an ordinary neighbour graph reads about three times the entries of the graph.
  bool has_hubs() const {
    constexpr std::int64_t kMost = 8;
    return std::accumulate(work_.begin(), work_.end(), std::int64_t{0}) > kMost * entries_;
  }

  // Merges mutual nearest neighbours until there are none, with a structure that does not read the whole list
  // of a hub at every merge. Calls record(merges) for every round, ordered by id. Nothing else may be called
  // after it.
  virtual void finish(const std::function<void(std::span<const Merge>)>& record) = 0;

  // ---- merging, in this order: unite all, then resize all, then take in all, then forget all ----

  void unite(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) cell_[std::max(a, b)].up = std::min(a, b);
  }

  void resize(Id cluster, Size size) { cell_[cluster].size = size; }

  // Gives a cluster the lists of its parts, and blends what these know of neighbours outside of it.
  virtual Blend take_in(Id cluster, std::span<const Part<Size>> parts) = 0;

  // From now on all that is known of the merged cluster's neighbours is the blended bound.
  void forget(Id cluster, Blend most) {
    keep_bound(cluster, most);
    --clusters_;
  }

 protected:
  struct Cell {
    Id up;      // towards the cluster's smallest point, whose own `up` is itself
    Size size;  // of the cluster, at its smallest point
  };

  struct Nearest {
    double value = kNone;
    Id best = kNobody;
    Size best_size = 0;  // at the last look
    float second = -std::numeric_limits<float>::infinity();
    bool lasting = false;  // whether `best` is the nearest for good, whatever it merges with
  };

  // A new cluster that may be the nearest neighbour of another one.
  struct Offer {
    Id to, cluster;
    double value;
  };

  static bool is_nearer(Id cluster, double value, const Nearest& than) {
    return value > than.value || (value == than.value && cluster < than.best);
  }

  // The smallest float that is no smaller.
  static float round_up(double value) {
    const auto rounded = static_cast<float>(value);
    return rounded < value ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
  }

  Neighborhoods(std::int64_t n, std::int64_t edges, std::span<const double> weights, int workers)
      : entries_(n + edges), clusters_(n), cell_(n), nearest_(n), offers_(workers), work_(workers) {
    for (Id i = 0; i < clusters_; ++i)
      cell_[i] = {i, weights.empty() ? Size{1} : static_cast<Size>(weights[i])};
  }

  void keep_bound(Id x, double most) {
    nearest_[x].best = kNobody;
    nearest_[x].value = most;
    nearest_[x].lasting = false;
  }

  const std::int64_t entries_;  // points and entries of the graph

  std::int64_t clusters_;  // an upper bound on how many: what a table of neighbours may have to hold

  // By cluster, at its smallest point.
  Array<Cell> cell_;
  Array<Nearest> nearest_;

  std::vector<std::vector<Offer>> offers_;  // by worker
  std::vector<std::int64_t> work_;          // likewise: list entries and clusters read so far
};

}  // namespace agglo
