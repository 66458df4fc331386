// The clusters and who is nearest to whom, for linkages that are not reducible.
//
// Where a union may be closer to a third cluster than any of its parts was, no bound of the third one's
// holds. So a new cluster is compared with all its neighbours at once, and each of them is told. What a
// cluster knows then is: of all neighbours that are as they were at the last look, none but `best` is closer
// than `second`, and all others have told since. If `best` is closer than `second`, it is the nearest; else
// lists are read, once that matters.
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

#include "base/memory.hpp"
#include "neighbors/graph.hpp"
#include "rounds/adjacency.hpp"
#include "rounds/chains.hpp"
#include "rounds/constraints.hpp"
#include "rounds/linkage.hpp"
#include "rounds/moments.hpp"

namespace agglo {

class EagerNeighborhoods {
 public:
  static constexpr bool kEager = true;
  using Size = double;
  using Linkage = Vectors;
  struct Blend {};  // nothing is known of a new cluster before it is compared

  // Weights are among the vectors' own.
  EagerNeighborhoods(const GraphView& graph, std::span<const double>, const Vectors& vectors,
                     const Limits* limits, int workers)
      : graph_(graph),
        limits_(limits),
        clusters_(graph.size()),
        moments_(vectors, graph.size()),
        state_(graph.size()),
        nearest_(graph.size()),
        chains_(graph),
        locks_(kLocks),
        workers_(workers) {
    for (Id i = 0; i < clusters_; ++i) state_[i].up = i;
  }

  Id best(Id x) const { return nearest_[x].best; }
  Id nearest(Id x) const { return best(x); }
  bool has_found_nearest(Id) const { return false; }
  double value(Id x) const { return nearest_[x].value; }
  double reach(Id x) const { return std::max(nearest_[x].value, double{nearest_[x].second}); }
  Size size(Id x) const { return moments_.weight(x); }
  bool alive(Id x) { return std::atomic_ref<Id>(state_[x].up).load(std::memory_order_relaxed) == x; }

  // Asks for what is known of a cluster ahead of the reading.
  void prefetch(Id x) const {
    moments_.prefetch(x);
    agglo::prefetch(&nearest_[x]);
  }

  // The cluster that i is in now.
  Id root(Id i) {
    // Threads shorten paths under each other's feet; any ancestor they see or leave is a right one.
    const auto up = [this](Id j) { return std::atomic_ref<Id>(state_[j].up); };
    for (Id parent = up(i).load(std::memory_order_relaxed); parent != i;) {
      const Id above = up(parent).load(std::memory_order_relaxed);
      if (above != parent) up(i).store(above, std::memory_order_relaxed);
      i = parent;
      parent = above;
    }
    return i;
  }

  // The first look at a point, or at a cluster to start from.
  void look_at_row(Id x) {
    const std::span<const Id> names = chains_.names(x);
    const float* weights = graph_.weights.data() + graph_.indptr[x];
    Nearest found;
    for (const Id y : names) moments_.ask_for_moment(y);
    for (std::size_t k = 0; k < names.size(); ++k)
      if (may(x, names[k])) offer(found, names[k], moments_.value(x, names[k], weights[k]));
    nearest_[x] = found;
  }

  // Makes the nearest neighbours of clusters exact where they may reach the threshold.
  void refresh(std::span<const Id> clusters, float threshold, int worker) {
    std::vector<Id>& pending = workers_[worker].gather.pending;
    pending.clear();
    for (const Id x : clusters) {
      const Nearest& nearest = nearest_[x];
      const bool exact = nearest.best != kNobody && nearest.second < nearest.value;
      if (!exact && static_cast<float>(reach(x)) >= threshold) pending.push_back(x);
    }
    for (std::size_t k = 0; k < pending.size(); ++k) {
      ask_ahead(pending, k);
      look(pending[k], workers_[worker], rounds_ - 1);
    }
  }

  // ---- merging: unite all, then make all, then chain all, then tell all, then forget all ----

  void unite(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) state_[std::max(a, b)].up = std::min(a, b);
  }

  // Makes the cluster of the parts that were united.
  template <class Parts>
  void make(Id cluster, const Parts& parts, int worker) {
    std::vector<Id>& names = workers_[worker].names;
    names.clear();
    for (const auto& part : parts) names.push_back(part.member);
    std::sort(names.begin(), names.end());
    moments_.merge(names, workers_[worker].scratch);
    state_[cluster].made = rounds_;
  }

  void chain(Id cluster, Id x) { chains_.append(cluster, x); }

  // Compares new clusters with their neighbours, and tells those that are not new themselves.
  void tell(std::span<const Id> clusters, int worker) {
    const Gather<Edge>& gather = workers_[worker].gather;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      ask_ahead(clusters, c);
      look(clusters[c], workers_[worker], rounds_);
      for (std::size_t k = 0; k < gather.ids.size(); ++k)
        if (!fresh(gather.ids[k])) hear(gather.ids[k], clusters[c], gather.stats[k], worker);
    }
  }

  void forget(Id, Blend) { --clusters_; }

  // Ends a round. Calls body(x) for clusters that are as close to a new one as they were to any other, or
  // closer, perhaps repeatedly.
  template <class Body>
  void each_closer(const Body& body) {
    ++rounds_;
    for (Worker& worker : workers_)
      for (const Id x : std::exchange(worker.closer, {})) body(x);
  }

 private:
  static constexpr std::size_t kLocks = 4096;
  static constexpr std::size_t kMeans = 4;  // that are asked for ahead of the reading

  // Of an edge the linkage is kept; what is not a number is to be computed. Neighbours that have become one
  // have changed, all of them.
  struct Edge {
    using Stat = double;
    static void combine(Stat&, Stat) {}
  };

  struct Nearest {
    double value = kNone;
    Id best = kNobody;
    float second = -std::numeric_limits<float>::infinity();
    Id heard = 0;   // the last round in which a new neighbour told of itself
    Id listed = 0;  // the last round that the list knows
  };

  struct State {
    Id up;        // towards the cluster's smallest point, whose own `up` is itself
    Id made = 0;  // the round in which the cluster was made
  };

  struct Worker {
    Gather<Edge> gather;
    std::vector<Id> names, closer;
    Moments::Scratch scratch;
  };

  struct Lock {
    void lock() {
      while (taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() { taken.clear(std::memory_order_release); }
    std::atomic_flag taken;
  };

  bool fresh(Id x) const { return state_[x].made == rounds_; }
  bool may(Id x, Id y) const { return limits_ == nullptr || limits_->may(x, y); }

  // A float that is no smaller.
  static float above(double value) {
    const auto rounded = static_cast<float>(value);
    return rounded < value ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
  }

  // What is kept does not depend on the order of offers.
  static void offer(Nearest& nearest, Id candidate, double value) {
    const bool closer = value > nearest.value || (value == nearest.value && candidate < nearest.best);
    const double other = closer ? nearest.value : value;
    if (other > nearest.second) nearest.second = above(other);
    if (closer) nearest.value = value, nearest.best = candidate;
  }

  // x learns how close a new cluster is.
  void hear(Id x, Id cluster, double value, int worker) {
    const std::lock_guard guard(locks_[x % kLocks]);
    Nearest& nearest = nearest_[x];
    // The first to tell finds what was known before the round.
    if (std::exchange(nearest.heard, rounds_) != rounds_ && nearest.best != kNobody &&
        (!alive(nearest.best) || fresh(nearest.best))) {
      nearest.best = kNobody;
      nearest.value = kNone;
    }
    if (value == kNone) return;
    if (value >= reach(x)) workers_[worker].closer.push_back(x);
    offer(nearest, cluster, value);
  }

  // Combines x's lists into one, under the clusters of that round, and finds its nearest neighbour.
  void look(Id x, Worker& own, Id round) {
    Gather<Edge>& gather = own.gather;
    gather.start(std::min(chains_.entries(x), clusters_));
    for (Id owner = x; owner != kNobody; owner = chains_.next(owner)) read(x, owner, gather);
    Nearest found;
    found.listed = round;
    for (std::size_t k = 0; k < gather.ids.size(); ++k) {
      if (k + kMeans < gather.ids.size()) prefetch(gather.ids[k + kMeans]);
      const Id y = gather.ids[k];
      double& value = gather.stats[k];
      if (!may(x, y))
        value = kNone;
      else if (std::isnan(value))
        value = moments_.value(x, y);
      if (value != kNone) offer(found, y, value);
    }
    nearest_[x] = found;
    chains_.replace(x, List<double>(gather.ids, gather.stats));
  }

  // Adds the neighbours of x that one of its points knows, with the linkages that are still right.
  void read(Id x, Id owner, Gather<Edge>& gather) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    const std::span<const Id> names = chains_.names(owner);
    const List<double>& list = chains_.list(owner);
    const bool same = !fresh(x) && owner == x;
    const Id listed = nearest_[x].listed;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (k + chains_.kNames < names.size()) agglo::prefetch(&state_[names[k + chains_.kNames]]);
      const Id id = root(names[k]);
      if (id == x) continue;
      if (gather.ids.size() < kMeans) prefetch(id);
      if (!same || id != names[k] || state_[id].made > listed)
        gather.add(id, kUnknown);
      else
        gather.add(id, list ? list.stats()[k] : moments_.value(x, id, graph_.weights[graph_.indptr[x] + k]));
    }
  }

  void ask_ahead(std::span<const Id> clusters, std::size_t k) const {
    chains_.ask_ahead(clusters, k, [this](Id name) { agglo::prefetch(&state_[name]); });
    if (k + 2 < clusters.size()) prefetch(clusters[k + 2]);
  }

  const GraphView graph_;
  const Limits* const limits_;
  std::int64_t clusters_;  // an upper bound on how many there are
  Moments moments_;
  Id rounds_ = 1;

  // By cluster, at its smallest point.
  Array<State> state_;
  Array<Nearest> nearest_;
  Chains<double> chains_;

  std::vector<Lock> locks_;
  std::vector<Worker> workers_;
};

}  // namespace agglo
