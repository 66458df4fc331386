// Sparse rows, and an inverted index. The index lists for every column the rows with an entry in the column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/thread_pool.hpp"
#include "points/duplicates.hpp"

namespace agglo {

// A view of sparse rows in CSR form. The columns of a row are sorted and distinct. No zeros are stored.
template <class T>
struct SparseRows {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> indices;  // column numbers, from 0 to columns - 1
  std::span<const T> values;              // if empty, all values are 1
  std::int64_t columns;

  std::int64_t n() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
  SparseRows first(std::int64_t count) const { return {indptr.first(count + 1), indices, values, columns}; }
  std::int64_t size(std::int64_t i) const { return indptr[i + 1] - indptr[i]; }
  std::span<const std::int32_t> row(std::int64_t i) const { return indices.subspan(indptr[i], size(i)); }
  std::span<const T> numbers(std::int64_t i) const { return values.subspan(indptr[i], size(i)); }
};

// Find the duplicates among sparse rows.
template <class T>
Duplicates find_duplicates(const SparseRows<T>& rows, ThreadPool& pool) {
  constexpr std::int64_t grain = 1024;
  Hashes hashes(rows.n());
  pool.ranges(rows.n(), grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      std::uint64_t code = 0;
      if (rows.size(i) > 0) code = hash_bytes(rows.row(i).data(), rows.row(i).size_bytes());
      if (rows.size(i) > 0 && !rows.values.empty())
        code = hash_bytes(rows.numbers(i).data(), rows.numbers(i).size_bytes(), code);
      hashes[i] = {code, static_cast<std::int32_t>(i)};
    }
  });
  return find_duplicates(std::move(hashes), [&](std::int32_t i, std::int32_t j) {
    return std::ranges::equal(rows.row(i), rows.row(j)) &&
           (rows.values.empty() || std::ranges::equal(rows.numbers(i), rows.numbers(j)));
  });
}

// The inverted index. For each column, it lists the rows with an entry in this column, and their weights.
struct Postings {
  std::vector<std::int64_t> starts;     // for each column, the index of its first entry in `positions`
  std::vector<std::int32_t> positions;  // positions of rows, increasing within a column
  std::vector<float> weights;           // if empty, all weights are 1

  // Build the index of the rows `ids`. The position of a row is its index in `ids`.
  // If the rows have values, weigh(row, value) returns the weight of an entry.
  template <class T, class Weigh>
  Postings(const SparseRows<T>& rows, std::span<const std::int32_t> ids, const Weigh& weigh)
      : starts(rows.columns + 1, 0) {
    for (const std::int32_t i : ids)
      for (const std::int32_t column : rows.row(i)) ++starts[column];
    std::int64_t total = 0;
    for (std::int64_t& start : starts)
      start = total += start;  // the end of the column; the loop below fills it backwards
    positions.resize(total);
    if (!rows.values.empty()) weights.resize(total);
    for (std::int64_t p = static_cast<std::int64_t>(ids.size()); p-- > 0;)
      for (std::int64_t e = rows.indptr[ids[p]]; e < rows.indptr[ids[p] + 1]; ++e) {
        const std::int64_t slot = --starts[rows.indices[e]];
        positions[slot] = static_cast<std::int32_t>(p);
        if (!rows.values.empty()) weights[slot] = weigh(ids[p], rows.values[e]);
      }
  }

  std::int64_t length(std::int32_t column) const { return starts[column + 1] - starts[column]; }
};

// A division of the columns into levels by frequency. Level 0 has the rarest columns.
// The rest of a row after a level is the size of the row in the columns of higher levels. The Measure of the
// search defines the size: a norm, or a number of members.
// The rest is an upper bound on what these columns can add to a similarity.
// So a search can often stop before it reads the frequent columns.
struct Levels {
  static constexpr int count = 8;
  // For each level, the share of the reading time that a search saves by stopping after this level.
  static constexpr double spared[count] = {0.97, 0.93, 0.87, 0.79, 0.68, 0.54, 0.34, 0};

  explicit Levels(const Postings& postings) : of(postings.starts.size() - 1) {
    std::vector<std::int32_t> order(of.size());
    std::iota(order.begin(), order.end(), 0);
    const auto work = [&](std::int32_t column) {
      const auto length = static_cast<double>(postings.length(column));
      return length * length;
    };
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return work(a) != work(b) ? work(a) < work(b) : a < b; });
    double all = 0, done = 0;
    for (const std::int32_t column : order) all += work(column);
    int level = 0;
    for (const std::int32_t column : order) {
      done += work(column);
      while (level + 1 < count && done > (1 - spared[level]) * all) ++level;
      of[column] = static_cast<std::uint8_t>(level);
    }
  }

  std::vector<std::uint8_t> of;        // the level of each column
  std::vector<float> rest[count - 1];  // for each level, the rest of the row at each position
};

// A term of a query: a column in which the query has an entry.
struct Term {
  std::int32_t column;
  std::uint8_t level;
  float weight;
  std::int64_t length;  // number of rows with an entry in the column

  bool operator<(const Term& other) const {
    return level != other.level ? level < other.level : column < other.column;
  }
};

}  // namespace agglo
