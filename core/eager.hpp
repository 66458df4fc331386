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

#include "adjacency.hpp"
#include "graph.hpp"
#include "limits.hpp"
#include "linkage.hpp"
#include "memory.hpp"
#include "moments.hpp"

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
        up_(graph.size()),
        made_(graph.size()),
        nearest_(graph.size()),
        chain_(graph.size()),
        locks_(kLocks),
        workers_(workers) {
    for (Id i = 0; i < clusters_; ++i) up_[i] = chain_[i].last = i;
  }

  Id best(Id x) const { return nearest_[x].best; }
  double value(Id x) const { return nearest_[x].value; }
  double reach(Id x) const { return std::max(nearest_[x].value, double{nearest_[x].second}); }
  Size size(Id x) const { return moments_.weight(x); }
  bool alive(Id x) { return std::atomic_ref<Id>(up_[x]).load(std::memory_order_relaxed) == x; }

  // The cluster that i is in now.
  Id root(Id i) {
    // Threads shorten paths under each other's feet; any ancestor they see or leave is a right one.
    const auto up = [this](Id j) { return std::atomic_ref<Id>(up_[j]); };
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
    Nearest found;
    for (std::int64_t k = graph_.indptr[x]; k < graph_.indptr[x + 1]; ++k)
      if (may(x, graph_.indices[k]))
        offer(found, graph_.indices[k], moments_.value(x, graph_.indices[k], graph_.weights[k]));
    nearest_[x] = found;
  }

  // Makes the nearest neighbours of clusters exact where they may reach the threshold.
  void refresh(std::span<const Id> clusters, float threshold, int worker) {
    for (const Id x : clusters) {
      const Nearest& nearest = nearest_[x];
      const bool exact = nearest.best != kNobody && nearest.second < nearest.value;
      if (!exact && static_cast<float>(reach(x)) >= threshold) look(x, workers_[worker], rounds_ - 1);
    }
  }

  // ---- merging: unite all, then make all, then chain all, then tell all, then forget all ----

  void unite(Id x, Id y) {
    const Id a = root(x), b = root(y);
    if (a != b) up_[std::max(a, b)] = std::min(a, b);
  }

  // Makes the cluster of the parts that were united.
  template <class Parts>
  void make(Id cluster, const Parts& parts, int worker) {
    std::vector<Id>& names = workers_[worker].names;
    names.clear();
    for (const auto& part : parts) names.push_back(part.member);
    std::sort(names.begin(), names.end());
    moments_.merge(names, workers_[worker].scratch);
    made_[cluster] = rounds_;
  }

  void chain(Id cluster, Id x) {
    chain_[chain_[cluster].last].next = x;
    chain_[cluster].last = chain_[x].last;
  }

  // Compares a new cluster with its neighbours, and tells those that are not new themselves.
  void tell(Id cluster, int worker) {
    look(cluster, workers_[worker], rounds_);
    const auto& [ids, values] =
        std::pair(std::span(workers_[worker].gather.ids), std::span(workers_[worker].gather.stats));
    for (std::size_t k = 0; k < ids.size(); ++k)
      if (!fresh(ids[k])) hear(ids[k], cluster, values[k], worker);
  }

  void forget(Id, Blend) { --clusters_; }

  // Ends a round. Calls body(x) for clusters that are closer to a new one than they were to any other,
  // perhaps repeatedly.
  template <class Body>
  void each_closer(const Body& body) {
    ++rounds_;
    for (Worker& worker : workers_)
      for (const Id x : std::exchange(worker.closer, {})) body(x);
  }

 private:
  static constexpr std::size_t kLocks = 4096;
  static constexpr std::size_t kAhead = 4;  // means that are asked for ahead of the reading

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
    Id heard = 0;  // the last round in which a new neighbour told of itself
  };

  // The points whose lists together are the cluster's; a point without a list has its row of the graph.
  struct Chain {
    Id next = kNobody;
    Id last = kNobody;  // at the cluster's smallest point
    List<double> list;
    Id listed = 0;  // the last round that the list knows
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

  bool fresh(Id x) const { return made_[x] == rounds_; }
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
    if (other != kNone) nearest.second = std::max(nearest.second, above(other));
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
    if (value > reach(x)) workers_[worker].closer.push_back(x);
    offer(nearest, cluster, value);
  }

  // Combines x's lists into one, under the clusters of that round, and finds its nearest neighbour.
  void look(Id x, Worker& own, Id round) {
    Gather<Edge>& gather = own.gather;
    std::int64_t entries = 0;
    for (Id owner = x; owner != kNobody; owner = chain_[owner].next) entries += length(owner);
    gather.start(std::min(entries, clusters_));
    for (Id owner = x; owner != kNobody; owner = chain_[owner].next) read(x, owner, gather);
    for (std::size_t k = 0; k < std::min(kAhead, gather.ids.size()); ++k) ask_for(gather.ids[k]);
    Nearest found;
    for (std::size_t k = 0; k < gather.ids.size(); ++k) {
      if (k + kAhead < gather.ids.size()) ask_for(gather.ids[k + kAhead]);
      const Id y = gather.ids[k];
      double& value = gather.stats[k];
      if (!may(x, y))
        value = kNone;
      else if (std::isnan(value))
        value = moments_.value(x, y);
      if (value != kNone) offer(found, y, value);
    }
    nearest_[x] = found;
    for (Id owner = x; owner != kNobody;) {
      chain_[owner].list = {};
      owner = std::exchange(chain_[owner].next, kNobody);
    }
    chain_[x].last = x;
    chain_[x].list = List<double>(gather.ids, gather.stats);
    chain_[x].listed = round;
  }

  // Adds the neighbours of x that one of its points knows, with the linkages that are still right.
  void read(Id x, Id owner, Gather<Edge>& gather) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    constexpr std::int64_t kNames = 12;  // that are asked for ahead
    const Chain& chain = chain_[owner];
    const bool same = !fresh(x) && owner == x;
    const std::int64_t size = length(owner), first = graph_.indptr[owner];
    const Id* ids = chain.list ? chain.list.ids() : graph_.indices.data() + first;
    for (std::int64_t k = 0; k < size; ++k) {
      if (k + kNames < size) agglo::ask_for(&up_[ids[k + kNames]]);
      const Id id = root(ids[k]);
      if (id == x) continue;
      if (!same || id != ids[k] || made_[id] > chain.listed)
        gather.add(id, kUnknown);
      else
        gather.add(id, chain.list ? chain.list.stats()[k] : moments_.value(x, id, graph_.weights[first + k]));
    }
  }

  std::int64_t length(Id owner) const {
    const auto& list = chain_[owner].list;
    return list ? list.size() : graph_.indptr[owner + 1] - graph_.indptr[owner];
  }

  void ask_for(Id x) const {
    moments_.ask_for(x);
    agglo::ask_for(&nearest_[x]);
  }

  const GraphView graph_;
  const Limits* const limits_;
  std::int64_t clusters_;  // an upper bound on how many there are
  Moments moments_;
  Id rounds_ = 1;

  // By cluster, at its smallest point.
  Array<Id> up_;
  Array<Id> made_;  // the round in which it was made
  Array<Nearest> nearest_;
  Array<Chain> chain_;

  std::vector<Lock> locks_;
  std::vector<Worker> workers_;
};

}  // namespace agglo
