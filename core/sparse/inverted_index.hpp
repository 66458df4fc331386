// Sparse rows, and an inverted index of them: which rows have a column, for every column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/order.hpp"

namespace agglo {

// Rows that somebody else owns, in compressed form: sorted columns without repetition, and no stored zeros.
template <class T>
struct SparseRows {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> indices;  // from 0 to columns - 1
  std::span<const T> values;              // empty: all are 1
  std::int64_t columns;

  std::int64_t n() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
  SparseRows first(std::int64_t count) const { return {indptr.first(count + 1), indices, values, columns}; }
  std::int64_t size(std::int64_t i) const { return indptr[i + 1] - indptr[i]; }
  std::span<const std::int32_t> row(std::int64_t i) const { return indices.subspan(indptr[i], size(i)); }
  std::span<const T> numbers(std::int64_t i) const { return values.subspan(indptr[i], size(i)); }
};

template <class T>
Copies copies(const SparseRows<T>& rows, ThreadPool& pool) {
  constexpr std::int64_t grain = 1024;
  Hashes hashes(rows.n());
  pool.ranges(rows.n(), grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      std::uint64_t code = 0;
      if (rows.size(i) > 0) code = hash(rows.row(i).data(), rows.row(i).size_bytes());
      if (rows.size(i) > 0 && !rows.values.empty())
        code = hash(rows.numbers(i).data(), rows.numbers(i).size_bytes(), code);
      hashes[i] = {code, static_cast<std::int32_t>(i)};
    }
  });
  return copies(std::move(hashes), [&](std::int32_t i, std::int32_t j) {
    return std::ranges::equal(rows.row(i), rows.row(j)) &&
           (rows.values.empty() || std::ranges::equal(rows.numbers(i), rows.numbers(j)));
  });
}

// Where each column is used: by the places of rows in an order of one's own, and with which weights.
struct Postings {
  std::vector<std::int64_t> starts;  // of each column
  std::vector<std::int32_t> places;  // ascending within a column
  std::vector<float> weights;        // empty: all are 1

  // Of the rows `ids` by their places. weigh(row, number) says with what weight, if rows have numbers.
  template <class T, class Weigh>
  Postings(const SparseRows<T>& rows, std::span<const std::int32_t> ids, const Weigh& weigh)
      : starts(rows.columns + 1, 0) {
    for (const std::int32_t i : ids)
      for (const std::int32_t column : rows.row(i)) ++starts[column];
    std::int64_t total = 0;
    for (std::int64_t& start : starts)
      start = total += start;  // ends, until the columns are filled backwards
    places.resize(total);
    if (!rows.values.empty()) weights.resize(total);
    for (std::int64_t p = static_cast<std::int64_t>(ids.size()); p-- > 0;)
      for (std::int64_t e = rows.indptr[ids[p]]; e < rows.indptr[ids[p] + 1]; ++e) {
        const std::int64_t slot = --starts[rows.indices[e]];
        places[slot] = static_cast<std::int32_t>(p);
        if (!rows.values.empty()) weights[slot] = weigh(ids[p], rows.values[e]);
      }
  }

  std::int64_t length(std::int32_t column) const { return starts[column + 1] - starts[column]; }
};

// Columns by how frequent they are, in levels: those of level 0 are the rarest. What a row has in the columns
// of later levels is known by one number, its `rest`, so that these need not be looked at.
struct Levels {
  static constexpr int count = 8;
  // Of the work of looking at all columns, the share that the columns beyond a level take.
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
  std::vector<float> rest[count - 1];  // of each place, what it has beyond a level
};

// A column of the row that is searched for.
struct Term {
  std::int32_t column;
  std::uint8_t level;
  float weight;
  std::int64_t length;  // rows that have the column

  bool operator<(const Term& other) const {
    return level != other.level ? level < other.level : column < other.column;
  }
};

}  // namespace agglo
