// The engine that runs the rounds of SCC, Affinity and HAC.
//
// Each threshold has a bucket, which is a list of clusters.
// Each cluster has an upper bound on the linkage to its nearest neighbour.
// A cluster is in the bucket of the first threshold that its upper bound reaches.
// Rounds with earlier thresholds do not read the cluster.
// So a run with many thresholds takes little more time than a run with few thresholds.
//
// In HAC only mutual nearest neighbours merge, so a round may merge only one pair of clusters.
// If few clusters merge in a round, the other clusters wait until their nearest neighbour has merged.
// A waiting cluster is in no bucket.
// A merged cluster is pushed to its neighbours: each neighbour compares it with its own nearest neighbour.
// If the neighbour lists of hubs are read too often, the class HubHac runs the remaining rounds.
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
#include "base/wait_lists.hpp"
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/rounds.hpp"
#include "rounds/tie_breaking.hpp"

namespace agglo {

// Runs the rounds. Neighbors is ClusterNeighbors for reducible linkages, or EagerNeighbors for vector
// linkages.
template <class Neighbors>
class Engine {
 public:
  using Size = typename Neighbors::Size;

  // `constraints` is the tracker that `neighbors` uses. If `constraints` is null, any two clusters may merge.
  Engine(std::int64_t n, Neighbors& neighbors, const RoundPlan& plan, std::span<const Id> must_link,
         ConstraintTracker* constraints, ThreadPool& pool, const Report& report)
      : plan_(plan),
        must_link_(must_link),
        pool_(pool),
        n_(static_cast<Id>(n)),
        sign_(plan.kind == Kind::similarity ? 1.0 : -1.0),
        report_([this, &report](std::int64_t, std::int64_t) {
          if (report) report(n_ - clusters_, n_);
        }),
        clusters_(n_),
        constraints_(constraints),
        neighbors_(neighbors),
        node_(n_),
        bucket_(n_, kNotQueued),
        rank_(n_) {
    std::iota(node_.begin(), node_.end(), 0);
    forest_.parent.assign(n_, kNoCluster);
    forest_.value.assign(n_, kNoThreshold);
    forest_.size.assign(n_, 1);
    forest_.round.assign(n_, 0);
    for (const double threshold : plan.thresholds)
      thresholds_.push_back(static_cast<float>(sign_ * threshold));
    // If the plan has no thresholds, use the threshold -infinity and repeat it until no clusters merge.
    if (thresholds_.empty()) thresholds_.push_back(-std::numeric_limits<float>::infinity());
    repeats_ = plan.until_stable || plan.thresholds.empty();
    buckets_.resize(thresholds_.size());
    if (plan_.mutual) waits_.resize(n_);
  }

  Forest run() {
    pool_.ranges(
        n_, kGrain * 8,
        [&](std::int64_t first, std::int64_t last, int worker) {
          for (Id i = static_cast<Id>(first); i < last; ++i) neighbors_.find_initial_nearest(i, worker);
        },
        report_);
    for (Id i = 0; i < n_; ++i) enqueue(i, 0);
    if (!must_link_.empty()) merge_must_links();
    for (std::size_t t = 0; t < thresholds_.size() && clusters_ > 1; ++t)
      while (run_round(t) && repeats_)
        if constexpr (!Neighbors::kEager)
          if (plan_.mutual && plan_.thresholds.empty() && neighbors_.has_hubs()) {
            run_hub_hac();
            break;
          }
    return std::move(forest_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Part = agglo::Part<Size>;

  static constexpr std::int64_t kGrain = 512;  // number of clusters per parallel task
  static constexpr std::int64_t kVectorGrain = 16;
  static constexpr std::int64_t kMergeGrain = Neighbors::kEager ? kVectorGrain : kGrain;
  static constexpr std::size_t kFewMerge = 8;  // clusters wait if fewer than 1 in 8 merge
  // When a part (a merging cluster) is read, the part 4 positions later is prefetched.
  static constexpr std::size_t kPrefetch = 4;
  static constexpr double kNoThreshold = std::numeric_limits<double>::quiet_NaN();

  // Runs one round with threshold number t. Returns whether any clusters merged.
  // A round updates nearest neighbours, selects pairs that reach the threshold, and merges components.
  bool run_round(std::size_t t) {
    const auto start = Clock::now();
    const std::vector<Id> due = pop_bucket(t);
    pool_.ranges(
        static_cast<std::int64_t>(due.size()), kMergeGrain,
        [&](std::int64_t first, std::int64_t last, int worker) {
          neighbors_.refresh({due.data() + first, due.data() + last}, thresholds_[t], worker);
        },
        report_);
    if constexpr (!Neighbors::kEager) push_merged_clusters();
    std::vector<Id> merging = select_merging(due, t);
    if (merging.empty()) return false;
    const std::size_t next_t = repeats_ ? t : t + 1;
    merge_with_nearest(merging, next_t);
    merge_components(find_components(collect_members(merging)), next_t);
    record_round(plan_.thresholds.empty() ? kNoThreshold : plan_.thresholds[t], start);
    return true;
  }

  // Runs a first round that merges all must-link pairs.
  void merge_must_links() {
    const auto start = Clock::now();
    std::vector<Id> members;
    for (std::size_t k = 0; k < must_link_.size(); ++k) {
      if (std::exchange(bucket_[must_link_[k]], kMergeTarget) != kMergeTarget)
        members.push_back(must_link_[k]);
      if (k % 2 == 1) merge_pair(must_link_[k - 1], must_link_[k]);
    }
    merge_components(find_components(members), 0);
    record_round(kNoThreshold, start);
  }

  // Runs the remaining rounds of HAC with the class HubHac, because the graph has hubs.
  void run_hub_hac() {
    auto start = Clock::now();
    neighbors_.run_hub_hac([&](std::span<const Merge> merges) {
      const auto round = static_cast<Id>(forest_.rounds.size() + 1);
      for (const auto& [low, high, value] : merges) {
        const auto node = static_cast<Id>(forest_.parent.size());
        forest_.parent[node_[low]] = forest_.parent[node_[high]] = node;
        forest_.parent.push_back(kNoCluster);
        forest_.value.push_back(sign_ * value);
        forest_.size.push_back(forest_.size[node_[low]] + forest_.size[node_[high]]);
        forest_.round.push_back(round);
        node_[low] = node;
        if (constraints_) constraints_->merge(low, high);
      }
      clusters_ -= static_cast<std::int64_t>(merges.size());
      record_round(kNoThreshold, start);
      start = Clock::now();
      if (round % kGrain == 0) report_(0, 0);
    });
  }

  void record_round(double threshold, Clock::time_point start) {
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const std::int64_t before = forest_.rounds.empty() ? n_ : forest_.rounds.back().after;
    forest_.rounds.push_back({threshold, before, clusters_, seconds.count()});
  }

  // ---- buckets ----

  // Puts x into the bucket of the first threshold that the upper bound of x reaches, from number t on.
  void enqueue(Id x, std::size_t t) {
    if (neighbors_.upper_bound(x) == kNoLinkage) return;  // x has no neighbours and never will
    const auto bound = static_cast<float>(neighbors_.upper_bound(x));
    const auto first = std::partition_point(thresholds_.begin() + t, thresholds_.end(),
                                            [&](float threshold) { return threshold > bound; });
    const auto bucket = static_cast<Id>(first - thresholds_.begin());
    if (std::exchange(bucket_[x], bucket) != bucket && first != thresholds_.end())
      buckets_[bucket].push_back(x);
  }

  // Empties bucket t. Returns the clusters that have neither merged nor moved to another bucket, without
  // duplicates.
  std::vector<Id> pop_bucket(std::size_t t) {
    std::vector<Id> due = std::exchange(buckets_[t], {});
    std::erase_if(due, [&](Id x) {
      const bool valid = neighbors_.is_cluster(x) && bucket_[x] == static_cast<Id>(t);
      if (valid) bucket_[x] = kNotQueued;
      return !valid;
    });
    return due;
  }

  // Returns the clusters that merge with their nearest neighbour. `due` has the clusters of bucket t.
  // Each other cluster of `due` is put back into a bucket, or waits until its nearest neighbour merges.
  std::vector<Id> select_merging(const std::vector<Id>& due, std::size_t t) {
    std::vector<Id> merging;
    for (const Id x : due) {
      const Id y = neighbors_.best(x);
      if (y == kNoCluster || static_cast<float>(neighbors_.value(x)) < thresholds_[t]) continue;
      if (plan_.mutual && neighbors_.nearest(y) != x) continue;
      bucket_[x] = kMerging;
      merging.push_back(x);
    }
    // If many clusters merge, reading all clusters again is faster than managing waiting clusters.
    const bool few_merge = plan_.mutual && kFewMerge * merging.size() < due.size();
    const std::size_t next_t = repeats_ && !merging.empty() ? t : t + 1;
    for (const Id x : due) {
      if (bucket_[x] == kMerging) continue;
      if (!few_merge)
        enqueue(x, next_t);
      else if (neighbors_.best(x) != kNoCluster && !neighbors_.nearest_is_final(x))
        waits_.add(x, neighbors_.best(x));
    }
    if (few_merge) have_waited_ = true;
    return merging;
  }

  // Puts each cluster that waits for y into the bucket of the first threshold it may reach, from number t on.
  void wake(Id y, std::size_t t) {
    while (waits_.first(y) != kNoCluster) {
      const Id x = waits_.first(y);
      waits_.remove(x);
      if (neighbors_.is_cluster(x) && bucket_[x] == kNotQueued) enqueue(x, t);
    }
  }

  // Pushes the merged clusters of the last round to their neighbours.
  // A waiting cluster whose nearest neighbour is now a merged cluster waits for that merged cluster.
  void push_merged_clusters() {
    const std::vector<Id> merged = std::exchange(merged_, {});
    if (!have_waited_) return;
    pool_.ranges(static_cast<std::int64_t>(merged.size()), kGrain,
                 [&](std::int64_t first, std::int64_t last, int worker) {
                   neighbors_.push_to_neighbors({merged.data() + first, merged.data() + last}, worker);
                 });
    neighbors_.apply_pushed([&](Id x) { waits_.add(x, neighbors_.best(x)); });
  }

  // ---- merging ----

  // The merged clusters of a round, sorted by id. The parts of a merged cluster are the clusters that merged
  // into it.
  struct Components {
    std::vector<Id> clusters;
    std::vector<std::int64_t> indptr;  // cluster k has parts[indptr[k] : indptr[k + 1]]
    std::vector<Part> parts;

    std::span<const Part> parts_of(std::size_t k) const {
      return std::span(parts).subspan(indptr[k], indptr[k + 1] - indptr[k]);
    }
  };

  // Merges clusters with their nearest neighbours. If there are constraints, the closest pairs merge first.
  // If a cluster may no longer merge, it is removed from `merging` and put back into a bucket.
  void merge_with_nearest(std::vector<Id>& merging, std::size_t next_t) {
    if (!constraints_) {
      for (const Id x : merging) neighbors_.merge_ids(x, neighbors_.best(x));
      return;
    }
    std::vector<Merge> pairs;
    pairs.reserve(merging.size());
    for (const Id x : merging) {
      const auto [low, high] = std::minmax({x, neighbors_.best(x)});
      pairs.push_back({low, high, neighbors_.value(x)});
    }
    std::sort(pairs.begin(), pairs.end(), merges_first);
    for (const Merge& pair : pairs) merge_pair(pair.low, pair.high);
    std::erase_if(merging, [&](Id x) {
      if (neighbors_.root(x) == neighbors_.root(neighbors_.best(x))) return false;
      enqueue(x, next_t);
      return true;
    });
  }

  // Merges the clusters of x and y if the constraints allow it.
  void merge_pair(Id x, Id y) {
    if (!constraints_) return neighbors_.merge_ids(x, y);
    const Id a = neighbors_.root(x), b = neighbors_.root(y);
    if (a == b || !constraints_->allows(a, b)) return;
    constraints_->merge(a, b);
    neighbors_.merge_ids(a, b);
  }

  // Returns the merging clusters and their nearest neighbours, without duplicates.
  std::vector<Id> collect_members(const std::vector<Id>& merging) {
    std::vector<Id> members = merging;
    for (const Id x : merging) {
      const Id y = neighbors_.best(x);
      if (bucket_[y] != kMerging && std::exchange(bucket_[y], kMergeTarget) != kMergeTarget)
        members.push_back(y);
    }
    return members;
  }

  // Groups `members` by the merged cluster that now contains them.
  Components find_components(const std::vector<Id>& members) {
    Components found;
    for (const Id x : members)
      if (neighbors_.is_cluster(x)) found.clusters.push_back(x);
    std::sort(found.clusters.begin(), found.clusters.end());
    for (std::size_t k = 0; k < found.clusters.size(); ++k) rank_[found.clusters[k]] = static_cast<Id>(k);
    // This is a counting sort. Counts start at index 2, and each inserted part advances the start of its row.
    // So after all insertions, indptr[k] is the start of row k.
    found.indptr.assign(found.clusters.size() + 2, 0);
    for (const Id x : members) ++found.indptr[rank_[neighbors_.root(x)] + 2];
    std::partial_sum(found.indptr.begin(), found.indptr.end(), found.indptr.begin());
    found.parts.resize(members.size());
    for (const Id x : members)
      found.parts[found.indptr[rank_[neighbors_.root(x)] + 1]++] = {x, neighbors_.size(x)};
    found.indptr.pop_back();
    return found;
  }

  // Adds the merged clusters to the forest, updates their neighbours and bounds, and puts them into buckets.
  void merge_components(const Components& merged, std::size_t next_t) {
    const std::size_t n = merged.clusters.size(), nodes = forest_.parent.size();
    forest_.parent.resize(nodes + n, kNoCluster);
    forest_.value.resize(nodes + n);
    forest_.size.resize(nodes + n);
    forest_.round.resize(nodes + n, static_cast<Id>(forest_.rounds.size() + 1));
    const auto for_each_cluster = [&](const auto& body) {
      pool_.ranges(static_cast<std::int64_t>(n), kMergeGrain,
                   [&](std::int64_t first, std::int64_t last, int worker) {
                     for (std::int64_t k = first; k < last; ++k) body(k, merged.parts_of(k), worker);
                   });
    };
    for_each_cluster([&](std::size_t k, std::span<const Part> parts, [[maybe_unused]] int worker) {
      Size size = 0;
      Id leaves = 0;
      for (const Part& part : parts) {
        size += part.size;
        leaves += forest_.size[node_[part.id]];
      }
      forest_.size[nodes + k] = leaves;
      if constexpr (Neighbors::kEager) {
        const std::size_t next = merged.indptr[k + 1] + kPrefetch;
        for (std::size_t p = next; p < std::min(next + parts.size(), merged.parts.size()); ++p)
          neighbors_.prefetch_cluster(merged.parts[p].id);
        neighbors_.merge_moments(merged.clusters[k], parts, worker);
      } else {
        neighbors_.resize(merged.clusters[k], size);
      }
    });
    std::vector<typename Neighbors::Bound> bounds(n);
    for_each_cluster([&](std::size_t k, std::span<const Part> parts, int) {
      const Id cluster = merged.clusters[k];
      double farthest = std::numeric_limits<double>::infinity();
      if constexpr (!Neighbors::kEager) bounds[k] = neighbors_.absorb_lists(cluster, parts);
      for (const auto& [x, _] : parts) {
        if (bucket_[x] == kMerging) farthest = std::min(farthest, neighbors_.value(x));
        if constexpr (Neighbors::kEager)
          if (x != cluster) neighbors_.append_lists(cluster, x);
        forest_.parent[node_[x]] = static_cast<Id>(nodes + k);
      }
      forest_.value[nodes + k] = sign_ * farthest;
    });
    if constexpr (Neighbors::kEager)
      pool_.ranges(static_cast<std::int64_t>(n), kVectorGrain,
                   [&](std::int64_t first, std::int64_t last, int worker) {
                     neighbors_.push_to_neighbors(
                         {merged.clusters.data() + first, merged.clusters.data() + last}, worker);
                   });
    for (std::size_t k = 0; k < n; ++k) {
      neighbors_.finish_merge(merged.clusters[k], bounds[k]);
      node_[merged.clusters[k]] = static_cast<Id>(nodes + k);
      enqueue(merged.clusters[k], next_t);
    }
    if (plan_.mutual) {
      for (const Part& part : merged.parts) waits_.remove(part.id);
      for (const Part& part : merged.parts) wake(part.id, next_t);
      if constexpr (!Neighbors::kEager)
        std::copy_if(merged.clusters.begin(), merged.clusters.end(), std::back_inserter(merged_),
                     [&](Id x) { return neighbors_.upper_bound(x) != kNoLinkage; });
    }
    if constexpr (Neighbors::kEager) neighbors_.end_round([&](Id x) { enqueue(x, next_t); });
    clusters_ -= static_cast<std::int64_t>(merged.parts.size() - n);
  }

  // The values of bucket_ for clusters that are in no bucket.
  // kNotQueued: the cluster is in no bucket and does not merge in this round.
  // kMerging: the cluster merges with its nearest neighbour in this round.
  // kMergeTarget: the cluster is the nearest neighbour of a merging cluster.
  static constexpr Id kNotQueued = -1, kMerging = -2, kMergeTarget = -3;

  const RoundPlan plan_;
  const std::span<const Id> must_link_;
  ThreadPool& pool_;
  const Id n_;
  const double sign_;  // 1 for similarities, -1 for distances
  const Report report_;
  std::int64_t clusters_;
  ConstraintTracker* const constraints_;
  Neighbors& neighbors_;
  std::vector<Id> node_;    // node of each cluster in the forest
  std::vector<Id> bucket_;  // bucket number of each cluster, or kNotQueued, kMerging or kMergeTarget
  std::vector<Id> rank_;    // scratch memory: position of each merged cluster in Components::clusters

  std::vector<float> thresholds_;         // from the closest to the farthest; negated for distances
  bool repeats_;                          // whether to repeat each threshold until a round merges nothing
  std::vector<std::vector<Id>> buckets_;  // indexed by threshold

  // Members that are used only if plan_.mutual is true.
  WaitLists waits_;           // for each cluster, the clusters that wait until it merges
  bool have_waited_ = false;  // whether any cluster has ever waited
  std::vector<Id> merged_;    // merged clusters that have not been pushed to their neighbours yet

  Forest forest_;
};

}  // namespace agglo
