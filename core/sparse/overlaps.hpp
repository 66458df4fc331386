// How much sets have in common, as the searches of sets see it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/inverted_search.hpp"
#include "sparse/jaccard.hpp"

namespace agglo {

// Minus the distance of sets of sizes a and b that have `common` members in common.
inline double closeness_of(std::int64_t a, std::int64_t b, std::int64_t common) {
  const std::int64_t all = a + b - common;
  return all == 0 ? 0 : -static_cast<double>(all - common) / static_cast<double>(all);
}

// Distinct sets by their sizes, so that those that are too small or too large to be close need not be met.
class Overlaps {
 public:
  Overlaps(const Sets& sets, Copies copied)
      : groups(std::move(copied)),
        ids(by_size(sets, groups.first)),
        postings(sets, ids, [](std::int32_t, float) { return 1.0f; }),
        levels(postings),
        sets_(sets) {
    std::array<std::int64_t, Levels::count> rest;
    for (auto& column : levels.rest) column.resize(ids.size());
    for (std::size_t p = 0; p < ids.size(); ++p) {
      sizes_.push_back(static_cast<float>(sets.size(ids[p])));
      set_rest(ids[p], rest);
      for (int level = 0; level + 1 < Levels::count; ++level)
        levels.rest[level][p] = static_cast<float>(rest[level]);
    }
  }

  struct Query {
    explicit Query(const Overlaps& overlaps) : members(overlaps.sets_.columns, 0) {}

    std::vector<Term> terms;
    std::array<std::int64_t, Levels::count> rest;  // how many members the set has beyond a level
    std::vector<std::uint8_t> members;             // 1 for the columns of the set
    std::int32_t row = -1;
    std::int64_t size = 0;
  };

  void begin(std::int32_t row, Query& x) const {
    scatter(row, x);
    x.terms.clear();
    for (const std::int32_t column : sets_.row(x.row))
      x.terms.push_back({column, levels.of[column], 1, postings.length(column)});
    std::sort(x.terms.begin(), x.terms.end());
    set_rest(x.row, x.rest);
  }

  double unseen(const Query& x, int level) const {
    return closeness_of(x.size, x.rest[level], x.rest[level]);
  }

  std::int64_t passing(const Query& x, int level, double bar, const float* partial, std::int64_t first,
                       std::int64_t n, std::int32_t* found) const {
    const float own = static_cast<float>(x.rest[level]);
    if (level + 1 == Levels::count) level = 0;  // whatever it is, it counts nothing
    return passing_overlaps(partial, levels.rest[level].data() + first, sizes_.data() + first, n, own,
                            static_cast<float>(x.size), slope(bar), found);
  }
  std::int64_t passing_of(const Query& x, int level, double bar, const float* partial,
                          const std::int32_t* places, std::int64_t n, std::int32_t* found) const {
    const float own = static_cast<float>(x.rest[level]), size = static_cast<float>(x.size);
    const float least = slope(bar);
    const float* rest = levels.rest[level + 1 == Levels::count ? 0 : level].data();
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int32_t q = places[j];
      found[count] = q;
      count += partial[q] + std::min(own, rest[q]) >= least * (size + sizes_[q]);
    }
    return count;
  }
  double lower(const Query& x, std::int32_t q) const { return closeness(x, ids[q]); }
  double exact(const Query& x, std::int32_t q, float partial, double) const {
    if (partial < 0) return closeness(x, ids[q]);
    return closeness_of(x.size, static_cast<std::int64_t>(sizes_[q]), static_cast<std::int64_t>(partial));
  }
  double self(std::int32_t) const { return 0; }
  std::pair<std::int64_t, std::int64_t> span(const Query& x, double bar) const {
    const auto n = static_cast<std::int64_t>(sizes_.size());
    const double share = 1 + bar;  // of the union that must be common: the smaller set at most, of the larger
    if (share <= 0) return {0, n};
    const double size = static_cast<double>(x.size);
    const auto place = [&](double bound) {
      return std::lower_bound(sizes_.begin(), sizes_.end(), bound) - sizes_.begin();
    };
    return {place(share * size - 0.5), place(size / share + 0.5)};
  }

  void scatter(std::int32_t row, Query& x) const {
    if (x.row >= 0)
      for (const std::int32_t column : sets_.row(x.row)) x.members[column] = 0;
    for (const std::int32_t column : sets_.row(row)) x.members[column] = 1;
    x.row = row;
    x.size = sets_.size(row);
  }

  double closeness(const Query& x, std::int32_t row) const {
    std::int64_t common = 0;
    for (const std::int32_t column : sets_.row(row)) common += x.members[column];
    return closeness_of(x.size, sets_.size(row), common);
  }

  // Sets have `common` members of `all` (counted in both) in common: common / (all - common) >= 1 + bar if
  // common >= slope * all. A little less, lest rounding exclude what is equal.
  static float slope(double bar) {
    const double share = 1 + bar;
    return static_cast<float>(share / (1 + share) * (1 - 1e-6));
  }

  Copies groups;
  std::vector<std::int32_t> ids;  // of the distinct sets, by place
  Postings postings;
  Levels levels;
  const double floor = -1;

 private:
  void set_rest(std::int32_t row, std::array<std::int64_t, Levels::count>& rest) const {
    rest.fill(0);
    for (const std::int32_t column : sets_.row(row))
      if (levels.of[column] > 0) ++rest[levels.of[column] - 1];
    for (int level = Levels::count - 2; level >= 0; --level) rest[level] += rest[level + 1];
  }

  static std::vector<std::int32_t> by_size(const Sets& sets, std::vector<std::int32_t> rows) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](std::int32_t a, std::int32_t b) { return sets.size(a) < sets.size(b); });
    return rows;
  }

  Sets sets_;
  std::vector<float> sizes_;  // as floats, which hold them
};

inline float distance_of(double closeness) { return static_cast<float>(0 - closeness); }

}  // namespace agglo
