// The similarity measure for searches of sets: minus the Jaccard distance, computed from the number of common
// members.
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

// Return minus the Jaccard distance of two sets with a and b members and `common` common members.
inline double jaccard_of_counts(std::int64_t a, std::int64_t b, std::int64_t common) {
  const std::int64_t all = a + b - common;
  return all == 0 ? 0 : -static_cast<double>(all - common) / static_cast<double>(all);
}

// The Measure of InvertedSearch for sets.
// Positions are sorted by set size. So a search can skip the ranges of sets that are too small or too large.
class Overlaps {
 public:
  Overlaps(const Sets& sets, Duplicates found_duplicates)
      : duplicates(std::move(found_duplicates)),
        ids(by_size(sets, duplicates.first)),
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
    // For each frequency level of the columns (see Levels), the number of members of the query in later
    // levels.
    std::array<std::int64_t, Levels::count> rest;
    std::vector<std::uint8_t> members;  // for each column, 1 if it is a member of the set
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
    return jaccard_of_counts(x.size, x.rest[level], x.rest[level]);
  }

  std::int64_t select(const Query& x, int level, double threshold, const float* partial, std::int64_t first,
                      std::int64_t n, std::int32_t* found) const {
    const float own = static_cast<float>(x.rest[level]);
    if (level + 1 == Levels::count) level = 0;  // after the last level, `own` is 0, so `rest` has no effect
    return select_overlaps(partial, levels.rest[level].data() + first, sizes_.data() + first, n, own,
                           static_cast<float>(x.size), slope(threshold), found);
  }
  std::int64_t select_of(const Query& x, int level, double threshold, const float* partial,
                         const std::int32_t* positions, std::int64_t n, std::int32_t* found) const {
    const float own = static_cast<float>(x.rest[level]), size = static_cast<float>(x.size);
    const float least = slope(threshold);
    const float* rest = levels.rest[level + 1 == Levels::count ? 0 : level].data();
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int32_t q = positions[j];
      found[count] = q;
      count += partial[q] + std::min(own, rest[q]) >= least * (size + sizes_[q]);
    }
    return count;
  }
  double lower_bound(const Query& x, std::int32_t q) const { return similarity(x, ids[q]); }
  double exact(const Query& x, std::int32_t q, float partial, double) const {
    if (partial < 0) return similarity(x, ids[q]);
    return jaccard_of_counts(x.size, static_cast<std::int64_t>(sizes_[q]),
                             static_cast<std::int64_t>(partial));
  }
  double self_similarity(std::int32_t) const { return 0; }
  std::pair<std::int64_t, std::int64_t> span(const Query& x, double threshold) const {
    const auto n = static_cast<std::int64_t>(sizes_.size());
    const double share = 1 + threshold;  // the share of the union that must be in both sets
    if (share <= 0) return {0, n};
    const double size = static_cast<double>(x.size);
    const auto position = [&](double bound) {
      return std::lower_bound(sizes_.begin(), sizes_.end(), bound) - sizes_.begin();
    };
    return {position(share * size - 0.5), position(size / share + 0.5)};
  }

  void scatter(std::int32_t row, Query& x) const {
    if (x.row >= 0)
      for (const std::int32_t column : sets_.row(x.row)) x.members[column] = 0;
    for (const std::int32_t column : sets_.row(row)) x.members[column] = 1;
    x.row = row;
    x.size = sets_.size(row);
  }

  double similarity(const Query& x, std::int32_t row) const {
    std::int64_t common = 0;
    for (const std::int32_t column : sets_.row(row)) common += x.members[column];
    return jaccard_of_counts(x.size, sets_.size(row), common);
  }

  // Returns the slope of a similarity threshold: the factor for a fast test of pairs of sets.
  // Two sets with a and b members reach the threshold only if they have at least slope * (a + b) common
  // members. This follows from common / (a + b - common) >= 1 + threshold, where `common` counts the common
  // members. The slope is slightly reduced, so that rounding excludes no set.
  static float slope(double threshold) {
    const double share = 1 + threshold;
    return static_cast<float>(share / (1 + share) * (1 - 1e-6));
  }

  Duplicates duplicates;
  std::vector<std::int32_t> ids;  // ids of the distinct sets, by position
  Postings postings;
  Levels levels;
  const double min_similarity = -1;

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
  std::vector<float> sizes_;  // the size of each set, which is exact in float32
};

inline float distance_of(double similarity) { return static_cast<float>(0 - similarity); }

}  // namespace agglo
