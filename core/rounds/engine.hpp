// All rounds of SCC, Affinity and HAC.
//
// Every cluster is in the bucket of the first threshold that a bound on its best linkage reaches, and is not
// looked at before: a run with many thresholds reads hardly more than a run with few.
//
// Where only mutual nearest neighbours merge, as in HAC, a round may merge a single pair. Then clusters that
// have to wait for their nearest neighbour are in no bucket. They are looked at again when it has merged, and
// other new clusters announce themselves to those that they are closer to. If the lists of hubs are read too
// often, HubHac runs the remaining rounds.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/rounds.hpp"

namespace agglo {

template <class Near>
class Engine {
 public:
  using Size = typename Near::Size;

  // `limits` are those that `near` has; none: any two clusters may be joined.
  Engine(std::int64_t n, Near& near, const Plan& plan, std::span<const Id> must, Limits* limits,
         ThreadPool& pool, const Report& report)
      : plan_(plan),
        must_(must),
        pool_(pool),
        n_(static_cast<Id>(n)),
        sign_(plan.kind == Kind::similarity ? 1.0 : -1.0),
        report_([this, &report](std::int64_t, std::int64_t) {
          if (report) report(n_ - clusters_, n_);
        }),
        clusters_(n_),
        limits_(limits),
        near_(near),
        node_(n_),
        bucket_(n_, kOut),
        rank_(n_) {
    std::iota(node_.begin(), node_.end(), 0);
    forest_.parent.assign(n_, kNobody);
    forest_.value.assign(n_, std::numeric_limits<double>::quiet_NaN());
    forest_.size.assign(n_, 1);
    forest_.round.assign(n_, 0);
    // Without thresholds there is one that everything reaches, kept until nothing merges.
    for (const double threshold : plan.thresholds)
      thresholds_.push_back(static_cast<float>(sign_ * threshold));
    if (thresholds_.empty()) thresholds_.push_back(-std::numeric_limits<float>::infinity());
    stay_ = plan.until_stable || plan.thresholds.empty();
    buckets_.resize(thresholds_.size());
    if (plan_.mutual) waits_.resize(n_);
  }

  Forest run() {
    pool_.ranges(
        n_, kGrain * 8,
        [&](std::int64_t first, std::int64_t last, int worker) {
          for (Id i = static_cast<Id>(first); i < last; ++i)
            if constexpr (Near::kEager)
              near_.look_at_row(i);
            else
              near_.first_look(i, worker);
        },
        report_);
    for (Id i = 0; i < n_; ++i) shelve(i, 0);
    if (!must_.empty()) link();
    for (std::size_t t = 0; t < thresholds_.size() && clusters_ > 1; ++t)
      while (round(t) && stay_)
        if constexpr (!Near::kEager)
          if (plan_.mutual && plan_.thresholds.empty() && near_.has_hubs()) {
            finish();
            break;
          }
    return std::move(forest_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  using Part = agglo::Part<Size>;

  static constexpr std::int64_t kGrain = 512;
  static constexpr std::int64_t kFew = 16;     // clusters of vectors, which are much work each
  static constexpr std::size_t kFewMerge = 8;  // a round that merges a smaller share of clusters merges few
  static constexpr std::size_t kAhead = 4;     // parts of them that are asked for ahead

  // One round at threshold t: nearest neighbours, those of them that reach it, components. Whether it merged.
  bool round(std::size_t t) {
    const auto start = Clock::now();
    const std::vector<Id> due = take(t);
    pool_.ranges(
        static_cast<std::int64_t>(due.size()), Near::kEager ? kFew : kGrain,
        [&](std::int64_t first, std::int64_t last, int worker) {
          near_.refresh({due.data() + first, due.data() + last}, thresholds_[t], worker);
        },
        report_);
    if constexpr (!Near::kEager) announce();
    std::vector<Id> joining = select(due, t);
    if (joining.empty()) return false;
    const std::size_t later = stay_ ? t : t + 1;
    unite(joining, later);
    merge(components(members(joining)), later);
    record(plan_.thresholds.empty() ? std::numeric_limits<double>::quiet_NaN() : plan_.thresholds[t], start);
    return true;
  }

  // The round before all others, which merges what must be linked.
  void link() {
    const auto start = Clock::now();
    std::vector<Id> linked;
    for (std::size_t k = 0; k < must_.size(); ++k) {
      if (std::exchange(bucket_[must_[k]], kJoined) != kJoined) linked.push_back(must_[k]);
      if (k % 2 == 1) unite(must_[k - 1], must_[k]);
    }
    merge(components(linked), 0);
    record(std::numeric_limits<double>::quiet_NaN(), start);
  }

  // Runs the remaining rounds of HAC on a graph with hubs.
  void finish() {
    auto start = Clock::now();
    near_.finish([&](std::span<const Merge> merges) {
      const auto round = static_cast<Id>(forest_.rounds.size() + 1);
      for (const auto& [low, high, value] : merges) {
        const auto node = static_cast<Id>(forest_.parent.size());
        forest_.parent[node_[low]] = forest_.parent[node_[high]] = node;
        forest_.parent.push_back(kNobody);
        forest_.value.push_back(sign_ * value);
        forest_.size.push_back(forest_.size[node_[low]] + forest_.size[node_[high]]);
        forest_.round.push_back(round);
        node_[low] = node;
        if (limits_) limits_->unite(low, high);
      }
      clusters_ -= static_cast<std::int64_t>(merges.size());
      record(std::numeric_limits<double>::quiet_NaN(), start);
      start = Clock::now();
      if (round % kGrain == 0) report_(0, 0);
    });
  }

  // Puts on record a round that has merged.
  void record(double threshold, Clock::time_point start) {
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const std::int64_t before = forest_.rounds.empty() ? n_ : forest_.rounds.back().after;
    forest_.rounds.push_back({threshold, before, clusters_, seconds.count()});
  }

  // ---- buckets ----

  // Puts x where the first threshold from t on that its neighbours may reach will find it.
  void shelve(Id x, std::size_t t) {
    if (near_.reach(x) == kNone) return;  // no neighbours, now or ever
    const auto reach = static_cast<float>(near_.reach(x));
    const auto place = std::partition_point(thresholds_.begin() + t, thresholds_.end(),
                                            [&](float threshold) { return threshold > reach; });
    const auto bucket = static_cast<Id>(place - thresholds_.begin());
    if (std::exchange(bucket_[x], bucket) != bucket && place != thresholds_.end())
      buckets_[bucket].push_back(x);
  }

  // The clusters in bucket t, each once.
  std::vector<Id> take(std::size_t t) {
    std::vector<Id> due = std::exchange(buckets_[t], {});
    std::erase_if(due, [&](Id x) {
      const bool stays = near_.alive(x) && bucket_[x] == static_cast<Id>(t);
      if (stays) bucket_[x] = kOut;
      return !stays;
    });
    return due;
  }

  // Of the clusters that were due, those that join their nearest neighbour; the others are shelved again.
  std::vector<Id> select(const std::vector<Id>& due, std::size_t t) {
    std::vector<Id> joining;
    for (const Id x : due) {
      const Id y = near_.best(x);
      if (y == kNobody || static_cast<float>(near_.value(x)) < thresholds_[t]) continue;
      if (plan_.mutual && near_.nearest(y) != x) continue;
      bucket_[x] = kJoining;
      joining.push_back(x);
    }
    // As long as many of them merge, to look at all of them again costs less than to have them wait.
    const bool waits = plan_.mutual && kFewMerge * joining.size() < due.size();
    const std::size_t later = stay_ && !joining.empty() ? t : t + 1;
    for (const Id x : due) {
      if (bucket_[x] == kJoining) continue;
      if (!waits)
        shelve(x, later);
      else if (near_.best(x) != kNobody && !near_.has_found_nearest(x))
        wait(x);
    }
    if (waits) have_waited_ = true;
    return joining;
  }

  // ---- waiting ----

  // Has x looked at again once its nearest neighbour has merged.
  void wait(Id x) {
    stop_waiting(x);
    const Id y = near_.best(x), next = waits_[y].first;
    waits_[x].next = next;
    waits_[x].previous = y;
    waits_[x].leads = true;
    if (next != kNobody) {
      waits_[next].previous = x;
      waits_[next].leads = false;
    }
    waits_[y].first = x;
  }

  void stop_waiting(Id x) {
    Wait& wait = waits_[x];
    if (wait.previous == kNobody) return;
    (wait.leads ? waits_[wait.previous].first : waits_[wait.previous].next) = wait.next;
    if (wait.next != kNobody) {
      waits_[wait.next].previous = wait.previous;
      waits_[wait.next].leads = wait.leads;
    }
    wait.previous = wait.next = kNobody;
  }

  // Puts the clusters that wait for y back into the bucket of threshold t.
  void wake(Id y, std::size_t t) {
    while (waits_[y].first != kNobody) {
      const Id x = waits_[y].first;
      stop_waiting(x);
      if (near_.alive(x) && bucket_[x] == kOut) shelve(x, t);
    }
  }

  // Tells waiting clusters of the new clusters that are closer to them than those that they wait for.
  void announce() {
    const std::vector<Id> made = std::exchange(made_, {});
    if (!have_waited_) return;
    pool_.ranges(static_cast<std::int64_t>(made.size()), kGrain,
                 [&](std::int64_t first, std::int64_t last, int worker) {
                   near_.announce({made.data() + first, made.data() + last}, worker);
                 });
    near_.each_announced([&](Id x) { wait(x); });
  }

  // ---- merging ----

  // New clusters in order of name, and the clusters that each is made of.
  struct Components {
    std::vector<Id> clusters;
    std::vector<std::int64_t> first;  // cluster k is made of parts[first[k]..first[k + 1]]
    std::vector<Part> parts;
  };

  // Unites joining clusters with their nearest neighbours, the closest first, as far as limits allow; those
  // that come too late join nobody and are shelved again.
  void unite(std::vector<Id>& joining, std::size_t later) {
    if (!limits_) {
      for (const Id x : joining) unite(x, near_.best(x));
      return;
    }
    struct Pair {
      double value;
      Id low, high;
    };
    std::vector<Pair> pairs;  // in one place, because they are compared many times
    pairs.reserve(joining.size());
    for (const Id x : joining) {
      const auto [low, high] = std::minmax({x, near_.best(x)});
      pairs.push_back({near_.value(x), low, high});
    }
    std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return a.value != b.value ? a.value > b.value : std::pair(a.low, a.high) < std::pair(b.low, b.high);
    });
    for (const Pair& pair : pairs) unite(pair.low, pair.high);
    std::erase_if(joining, [&](Id x) {
      if (near_.root(x) == near_.root(near_.best(x))) return false;
      shelve(x, later);
      return true;
    });
  }

  void unite(Id x, Id y) {
    if (!limits_) return near_.unite(x, y);
    const Id a = near_.root(x), b = near_.root(y);
    if (a == b || !limits_->may(a, b)) return;
    limits_->unite(a, b);
    near_.unite(a, b);
  }

  // Joining clusters and those that they join, each once.
  std::vector<Id> members(const std::vector<Id>& joining) {
    std::vector<Id> found = joining;
    for (const Id x : joining) {
      Id& bucket = bucket_[near_.best(x)];
      if (bucket != kJoining && std::exchange(bucket, kJoined) != kJoined) found.push_back(near_.best(x));
    }
    return found;
  }

  // The components of clusters that have been united.
  Components components(const std::vector<Id>& members) {
    Components found;
    for (const Id x : members)
      if (near_.alive(x)) found.clusters.push_back(x);
    std::sort(found.clusters.begin(), found.clusters.end());
    for (std::size_t k = 0; k < found.clusters.size(); ++k) rank_[found.clusters[k]] = static_cast<Id>(k);
    found.first.assign(found.clusters.size() + 2, 0);  // one ahead, so that placing the parts leaves it right
    for (const Id x : members) ++found.first[rank_[near_.root(x)] + 2];
    std::partial_sum(found.first.begin(), found.first.end(), found.first.begin());
    found.parts.resize(members.size());
    for (const Id x : members) found.parts[found.first[rank_[near_.root(x)] + 1]++] = {x, near_.size(x)};
    found.first.pop_back();
    return found;
  }

  // Makes clusters of components: nodes of the tree, shelved by what their parts know of others.
  void merge(const Components& made, std::size_t later) {
    const std::size_t n = made.clusters.size(), nodes = forest_.parent.size();
    forest_.parent.resize(nodes + n, kNobody);
    forest_.value.resize(nodes + n);
    forest_.size.resize(nodes + n);
    forest_.round.resize(nodes + n, static_cast<Id>(forest_.rounds.size() + 1));
    const auto each_cluster = [&](const auto& body) {
      pool_.ranges(static_cast<std::int64_t>(n), Near::kEager ? kFew : kGrain,
                   [&](std::int64_t first, std::int64_t last, int worker) {
                     for (std::int64_t k = first; k < last; ++k)
                       body(k,
                            std::span(made.parts).subspan(made.first[k], made.first[k + 1] - made.first[k]),
                            worker);
                   });
    };
    each_cluster([&](std::size_t k, std::span<const Part> parts, [[maybe_unused]] int worker) {
      Size size = 0;
      Id leaves = 0;
      for (const Part& part : parts) {
        size += part.size;
        leaves += forest_.size[node_[part.member]];
      }
      forest_.size[nodes + k] = leaves;
      if constexpr (Near::kEager) {
        const std::size_t next = made.first[k + 1] + kAhead;
        for (std::size_t p = next; p < std::min(next + parts.size(), made.parts.size()); ++p)
          near_.prefetch(made.parts[p].member);
        near_.make(made.clusters[k], parts, worker);
      } else {
        near_.resize(made.clusters[k], size);
      }
    });
    std::vector<typename Near::Blend> blends(n);
    each_cluster([&](std::size_t k, std::span<const Part> parts, int) {
      const Id cluster = made.clusters[k];
      double farthest = std::numeric_limits<double>::infinity();
      if constexpr (!Near::kEager) blends[k] = near_.take_in(cluster, parts);
      for (const auto& [x, _] : parts) {
        if (bucket_[x] == kJoining) farthest = std::min(farthest, near_.value(x));
        if constexpr (Near::kEager)
          if (x != cluster) near_.chain(cluster, x);
        forest_.parent[node_[x]] = static_cast<Id>(nodes + k);
      }
      forest_.value[nodes + k] = sign_ * farthest;
    });
    if constexpr (Near::kEager)
      pool_.ranges(static_cast<std::int64_t>(n), kFew,
                   [&](std::int64_t first, std::int64_t last, int worker) {
                     near_.tell({made.clusters.data() + first, made.clusters.data() + last}, worker);
                   });
    for (std::size_t k = 0; k < n; ++k) {
      near_.forget(made.clusters[k], blends[k]);
      node_[made.clusters[k]] = static_cast<Id>(nodes + k);
      shelve(made.clusters[k], later);
    }
    if (plan_.mutual) {
      for (const Part& part : made.parts) stop_waiting(part.member);
      for (const Part& part : made.parts) wake(part.member, later);
      if constexpr (!Near::kEager)
        std::copy_if(made.clusters.begin(), made.clusters.end(), std::back_inserter(made_),
                     [&](Id x) { return near_.reach(x) != kNone; });
    }
    if constexpr (Near::kEager) near_.each_closer([&](Id x) { shelve(x, later); });
    clusters_ -= static_cast<std::int64_t>(made.parts.size() - n);
  }

  // What bucket_ says of a cluster that is in none: taken out, about to join another, about to be joined.
  static constexpr Id kOut = -1, kJoining = -2, kJoined = -3;

  const Plan plan_;
  const std::span<const Id> must_;
  ThreadPool& pool_;
  const Id n_;
  const double sign_;
  const Report report_;
  std::int64_t clusters_;
  Limits* const limits_;
  Near& near_;
  std::vector<Id> node_;    // of each cluster
  std::vector<Id> bucket_;  // likewise
  std::vector<Id> rank_;    // scratch: of a new cluster among those of its round

  std::vector<float> thresholds_;  // from near to far, larger being closer
  bool stay_;
  std::vector<std::vector<Id>> buckets_;

  // If only mutual nearest neighbours merge: lists of the clusters that wait for each cluster.
  struct Wait {
    Id first = kNobody;                     // of those that wait for this cluster
    Id previous = kNobody, next = kNobody;  // of those that wait for the same one as this cluster
    bool leads = false;                     // whether it is the first; `previous` is then what it waits for
  };
  std::vector<Wait> waits_;
  bool have_waited_ = false;
  std::vector<Id> made_;  // new clusters that have neighbours, if only mutual nearest neighbours merge

  Forest forest_;
};

}  // namespace agglo
