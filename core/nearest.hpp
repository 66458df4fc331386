// The clusters and who is nearest to whom, as far as that is no matter of the linkage.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>

#include "adjacency.hpp"
#include "linkage.hpp"
#include "memory.hpp"

namespace agglo {

// A cluster that goes into a new one.
template <class Size>
struct Part {
  Id member;
  Size size;
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
  };

  Neighborhoods(std::int64_t n, std::span<const double> weights) : clusters_(n), cell_(n), nearest_(n) {
    for (Id i = 0; i < clusters_; ++i)
      cell_[i] = {i, weights.empty() ? Size{1} : static_cast<Size>(weights[i])};
  }

  void keep_bound(Id x, double most) {
    nearest_[x].best = kNobody;
    nearest_[x].value = most;
  }

  std::int64_t clusters_;  // an upper bound on how many: what a table of neighbours may have to hold

  // By cluster, at its smallest point.
  Array<Cell> cell_;
  Array<Nearest> nearest_;
};

}  // namespace agglo
