// Which clusters may be joined: none with points in them that are to stay apart, and none that are too large
// together. What may not be joined now may not be joined later, for clusters only grow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rounds/adjacency.hpp"

namespace agglo {

// What is known of the points beforehand. Pairs lie one after the other.
struct Constraints {
  std::span<const Id> must;    // pairs of points that are merged before the first round
  std::span<const Id> cannot;  // pairs of points that are never in one cluster
  std::span<const Id> groups;  // pairs (point, group): points of one group are never in one cluster
  double most = std::numeric_limits<double>::infinity();  // that a cluster may weigh
  std::span<const double> weights;                        // of the points; empty: 1 each

  bool limit() const { return !cannot.empty() || !groups.empty() || std::isfinite(most); }
};

// The clusters of a run, as far as that matters. A cluster with a point in any constraint has a tag, under
// which there is a list of whom it is to stay apart from, and one of the groups it has members of. When
// clusters merge, the shorter lists are appended to the longer ones, whose tag stays: so every entry moves at
// most as often as its list can double.
class Limits {
 public:
  Limits(std::int64_t n, const Constraints& given) : most_(given.most) {
    if (std::isfinite(most_)) {
      weight_.assign(n, 1.0);
      std::copy(given.weights.begin(), given.weights.end(), weight_.begin());
    }
    if (given.cannot.empty() && given.groups.empty()) return;
    tag_.assign(n, kNobody);
    apart_.reserve(given.cannot.size() / 2);
    for (std::size_t k = 0; k < given.cannot.size(); k += 2) {
      const Id s = tagged(given.cannot[k]), t = tagged(given.cannot[k + 1]);
      apart_.insert(either(s, t));
      told_[s].partners.push_back(t);
      told_[t].partners.push_back(s);
    }
    for (std::size_t k = 0; k < given.groups.size(); k += 2) {
      const Id s = tagged(given.groups[k]), group = given.groups[k + 1];
      member_.insert(key(s, group));
      told_[s].groups.push_back(group);
    }
  }

  // Whether clusters a and b may be joined.
  bool may(Id a, Id b) const {
    if (!weight_.empty() && weight_[a] + weight_[b] > most_) return false;
    if (tag_.empty() || tag_[a] == kNobody || tag_[b] == kNobody) return true;
    Id s = tag_[a], t = tag_[b];
    if (apart_.contains(either(s, t))) return false;
    if (told_[s].groups.size() > told_[t].groups.size()) std::swap(s, t);
    return std::none_of(told_[s].groups.begin(), told_[s].groups.end(),
                        [&](Id group) { return member_.contains(key(t, group)); });
  }

  // Makes one cluster of a and b, named by the smaller.
  void unite(Id a, Id b) {
    const Id name = std::min(a, b);
    if (!weight_.empty()) weight_[name] = weight_[a] + weight_[b];
    if (tag_.empty()) return;
    Id s = tag_[a], t = tag_[b];
    tag_[name] = std::max(s, t);
    if (std::min(s, t) == kNobody) return;
    if (told_[s].length() < told_[t].length()) std::swap(s, t);
    tag_[name] = s;
    up_[t] = s;
    const Told moved = std::exchange(told_[t], {});
    for (const Id partner : moved.partners) {
      const Id now = root(partner);
      apart_.insert(either(s, now));
      told_[s].partners.push_back(now);
    }
    for (const Id group : moved.groups) {
      member_.insert(key(s, group));
      told_[s].groups.push_back(group);
    }
  }

 private:
  struct Told {
    std::vector<Id> partners;  // tags; those that have gone lead to the one they went into
    std::vector<Id> groups;
    std::size_t length() const { return partners.size() + groups.size(); }
  };

  Id tagged(Id point) {
    if (tag_[point] == kNobody) {
      tag_[point] = static_cast<Id>(told_.size());
      up_.push_back(tag_[point]);
      told_.emplace_back();
    }
    return tag_[point];
  }

  Id root(Id tag) {
    while (up_[tag] != tag) tag = up_[tag] = up_[up_[tag]];
    return tag;
  }

  static std::uint64_t key(Id tag, Id other) {
    return static_cast<std::uint64_t>(tag) << 32 | static_cast<std::uint32_t>(other);
  }
  static std::uint64_t either(Id s, Id t) { return key(std::min(s, t), std::max(s, t)); }

  const double most_;
  std::vector<double> weight_;                // of each cluster, if there is a limit
  std::vector<Id> tag_;                       // of each cluster, if points are to stay apart
  std::vector<Id> up_;                        // by tag: itself, or towards the one it went into
  std::vector<Told> told_;                    // likewise
  std::unordered_set<std::uint64_t> apart_;   // pairs of tags
  std::unordered_set<std::uint64_t> member_;  // (tag, group)
};

}  // namespace agglo
