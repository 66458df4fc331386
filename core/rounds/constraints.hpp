// Constraints on merges: must-link and cannot-link pairs, exclusive groups, and a maximum cluster weight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/disjoint_set.hpp"
#include "base/ids.hpp"

namespace agglo {

// The constraints of one run, and the weights of its points. Each pair is stored in two consecutive entries
// of a span.
struct Constraints {
  std::span<const Id> must_link;    // pairs of points that merge in an extra first round without a threshold
  std::span<const Id> cannot_link;  // pairs of points that are never in the same cluster
  std::span<const Id> groups;       // pairs (point, group): a cluster has at most one point of each group
  double max_weight = std::numeric_limits<double>::infinity();  // maximum weight of a cluster
  std::span<const double> weights;                              // weights of the points (if empty, each is 1)

  bool forbid_merges() const { return !cannot_link.empty() || !groups.empty() || std::isfinite(max_weight); }
};

// Decides which clusters may merge. The caller reports every merge to this tracker.
//
// If two clusters may not merge now, they may not merge later either, when they have grown.
//
// Every cluster with a cannot-link pair or a group has a conflict list: its groups and its cannot-link
// partners. The tag of a cluster is the number of its conflict list.
// When two clusters merge, the shorter conflict list is appended to the longer conflict list.
// The merged cluster keeps the tag of the longer list. So each conflict is moved at most O(log n) times.
class ConstraintTracker {
 public:
  ConstraintTracker(std::int64_t n, const Constraints& constraints) : max_weight_(constraints.max_weight) {
    if (std::isfinite(max_weight_)) {
      weight_.assign(n, 1.0);
      std::copy(constraints.weights.begin(), constraints.weights.end(), weight_.begin());
    }
    const auto& [must_link, cannot_link, groups, max_weight, weights] = constraints;
    if (cannot_link.empty() && groups.empty()) return;
    tag_.assign(n, kNoCluster);
    cannot_link_.reserve(cannot_link.size() / 2);
    for (std::size_t k = 0; k < cannot_link.size(); k += 2) {
      const Id s = assign_tag(cannot_link[k]), t = assign_tag(cannot_link[k + 1]);
      cannot_link_.insert(pair_key(s, t));
      conflicts_[s].partners.push_back(t);
      conflicts_[t].partners.push_back(s);
    }
    for (std::size_t k = 0; k < groups.size(); k += 2) {
      const Id s = assign_tag(groups[k]), group = groups[k + 1];
      has_group_.insert(key(s, group));
      conflicts_[s].groups.push_back(group);
    }
  }

  // Returns whether clusters a and b may merge.
  bool allows(Id a, Id b) const {
    if (!weight_.empty() && weight_[a] + weight_[b] > max_weight_) return false;
    if (tag_.empty() || tag_[a] == kNoCluster || tag_[b] == kNoCluster) return true;
    Id s = tag_[a], t = tag_[b];
    if (cannot_link_.contains(pair_key(s, t))) return false;
    if (conflicts_[s].groups.size() > conflicts_[t].groups.size()) std::swap(s, t);
    return std::none_of(conflicts_[s].groups.begin(), conflicts_[s].groups.end(),
                        [&](Id group) { return has_group_.contains(key(t, group)); });
  }

  bool has_max_weight() const { return !weight_.empty(); }
  double weight(Id cluster) const { return weight_[cluster]; }  // call only if has_max_weight()
  // Returns whether cannot-link pairs or groups forbid some merges of a cluster.
  bool has_conflicts(Id cluster) const { return !tag_.empty() && tag_[cluster] != kNoCluster; }

  // Records that clusters a and b have merged. The merged cluster has the smaller of the two ids.
  void merge(Id a, Id b) {
    const Id id = std::min(a, b);
    if (!weight_.empty()) weight_[id] = weight_[a] + weight_[b];
    if (tag_.empty()) return;
    Id s = tag_[a], t = tag_[b];
    tag_[id] = std::max(s, t);
    if (std::min(s, t) == kNoCluster) return;
    if (conflicts_[s].size() < conflicts_[t].size()) std::swap(s, t);
    tag_[id] = s;
    parent_[t] = s;
    const ConflictList moved = std::exchange(conflicts_[t], {});
    for (const Id partner : moved.partners) {
      const Id tag = find_root(partner, [this](Id i) -> Id& { return parent_[i]; });
      cannot_link_.insert(pair_key(s, tag));
      conflicts_[s].partners.push_back(tag);
    }
    for (const Id group : moved.groups) {
      has_group_.insert(key(s, group));
      conflicts_[s].groups.push_back(group);
    }
  }

 private:
  struct ConflictList {
    // The tags of the cannot-link partners at the time of insertion. If a partner has merged since then, its
    // current tag is the root of the stored tag in parent_.
    std::vector<Id> partners;
    std::vector<Id> groups;
    std::size_t size() const { return partners.size() + groups.size(); }
  };

  Id assign_tag(Id point) {
    if (tag_[point] == kNoCluster) {
      tag_[point] = static_cast<Id>(conflicts_.size());
      parent_.push_back(tag_[point]);
      conflicts_.emplace_back();
    }
    return tag_[point];
  }

  static std::uint64_t key(Id tag, Id other) {
    return static_cast<std::uint64_t>(tag) << 32 | static_cast<std::uint32_t>(other);
  }
  static std::uint64_t pair_key(Id s, Id t) { return key(std::min(s, t), std::max(s, t)); }

  const double max_weight_;
  std::vector<double> weight_;  // weight of each cluster; empty if there is no maximum weight
  std::vector<Id> tag_;     // tag of each cluster, or kNoCluster; empty without cannot-link pairs and groups
  std::vector<Id> parent_;  // parent of each tag in a union-find of tags
  std::vector<ConflictList> conflicts_;            // indexed by tag
  std::unordered_set<std::uint64_t> cannot_link_;  // pairs of tags whose clusters must not merge
  // Pairs (tag, group): the cluster with this tag has a point of the group.
  std::unordered_set<std::uint64_t> has_group_;
};

}  // namespace agglo
