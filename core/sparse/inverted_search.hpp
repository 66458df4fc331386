// Exact k nearest neighbours of sparse rows by an inverted index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "base/topk.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/lists.hpp"
#include "simd/filter.hpp"
#include "sparse/inverted_index.hpp"

namespace agglo {

// Finds the nearest rows of a sparse row. Two rows without a common column are not neighbours.
//
// How the search works: of each group of duplicates, only the first row is searched for.
// The search reads the columns of a query from the inverted index, one level after the other.
// The level with the rarest columns comes first.
// Each row with an entry in these columns accumulates a partial similarity.
// After a level, the rows with the largest partial similarities are compared with the query in full.
// The full comparisons give a threshold: a similarity that at least k rows reach.
// The rests of two rows (see Levels) are upper bounds on what the remaining levels can add to their
// similarity. If only few rows can still reach the threshold, they are compared in full, and the search ends.
// So the search seldom reads the most frequent columns, which take most time.
//
// All bounds include rounding errors, so the result is exact.
//
// A Measure defines the similarity. It has these members:
// - ids and duplicates: the distinct rows and the duplicates of all rows. The position of a distinct row is
//   its index in ids.
// - postings and levels: the inverted index of the distinct rows, and the levels of its columns.
// - Query: the type of a query. begin(row, query) sets the terms of the query, sorted by level.
// - lower_bound(query, q) returns a lower bound of the similarity of the query and the row at position q.
// - exact(query, q, partial, threshold) returns the similarity of the query and the row at position q.
//    If the similarity is below the threshold, the result may be any number below the threshold.
//    If all levels have been read, `partial` is the partial similarity. Otherwise, `partial` is -1.
// - min_similarity: only rows with a larger similarity are neighbours.
// - span(query, threshold) returns a range of positions. Rows at other positions cannot reach the threshold.
// - unseen(query, level) returns an upper bound of the similarity of the query and an unseen row.
//    An unseen row has no column in common with the query up to this level.
// - select(query, level, threshold, partial, first, n, found) finds the positions of rows that can reach the
//   threshold.
//    `partial` holds the partial similarities up to the level. The n positions from `first` on are tested.
// - select_of(query, level, threshold, partial, positions, n, found) tests n listed positions instead.
template <class Measure>
class InvertedSearch {
 public:
  InvertedSearch(const Measure& measure, std::int64_t k, int workers)
      : measure_(measure),
        k_(k),
        n_(static_cast<std::int64_t>(measure.ids.size())),
        average_(static_cast<std::int64_t>(measure.postings.positions.size()) / n_ + kLatency) {
    scratch_.reserve(workers);
    for (int worker = 0; worker < workers; ++worker) scratch_.emplace_back(measure);
  }

  // Return the k nearest distinct rows of the row at position p, nearest first. There may be fewer than k.
  // Of each group of duplicates, the result contains only the first row.
  std::span<const Candidate> search_row(std::int64_t p, int worker) {
    return search_row(p, measure_.ids[p], worker);
  }

  // Return the k nearest distinct rows of a query, nearest first. A query has no position.
  std::span<const Candidate> search_query(std::int32_t row, int worker) {
    return search_row(-1, row, worker);
  }

 private:
  std::span<const Candidate> search_row(std::int64_t p, std::int32_t row, int worker) {
    Scratch& scratch = scratch_[worker];
    if (scratch.partial.empty()) {
      scratch.partial.assign(n_, 0.0f);
      scratch.touched.resize(n_ + 1);
      scratch.found.resize(n_);
    }
    auto& x = scratch.query;
    measure_.begin(row, x);
    std::int64_t total = 0;
    for (const Term& term : x.terms) total += term.length;
    scratch.is_listed = total < n_ / kSparse;
    if (!search(p, scratch)) {  // fewer than k rows share a column with this row
      scratch.is_listed = true;
      search(p, scratch);
    }
    return scratch.best;
  }

  // The time of a random access to a row, relative to reading one entry of the index.
  static constexpr std::int64_t kLatency = 16;
  // If a query touches less than 1 / kSparse of all rows, the touched rows are listed.
  static constexpr std::int64_t kSparse = 8;
  static constexpr std::int64_t kChunk = 4096;  // number of positions that select() tests at once

  struct Scratch {
    explicit Scratch(const Measure& measure) : query(measure) {}

    typename Measure::Query query;
    // The partial similarity of the row at each position. It is 0 if the row has not been touched yet.
    std::vector<float> partial;
    // Whether `touched` lists the positions of touched rows. If true, touched rows never have partial
    // similarity 0.
    bool is_listed = false;
    std::vector<std::int32_t> touched, found;
    std::int64_t count = 0;  // number of touched rows
    int hint = 0;            // the first level after which the search tries to select candidates
    std::vector<std::pair<float, std::int32_t>> promising;
    std::vector<Candidate> best;
  };

  // Searches the nearest rows of the current query. Returns false if fewer than k rows share a column with
  // the query, and these rows are not listed. Then the caller must search again with a list of the touched
  // rows.
  bool search(std::int64_t p, Scratch& scratch) const {
    auto& x = scratch.query;
    scratch.count = 0;
    double threshold = measure_.min_similarity;
    std::int64_t left = -1;  // number of rows that can still reach the threshold; -1 if too many
    auto term = x.terms.begin();
    for (int level = 0; level < Levels::count; ++level) {
      for (; term != x.terms.end() && term->level == level; ++term)
        add(*term, measure_.span(x, threshold), scratch);
      const bool last = term == x.terms.end();
      if (!last && level < scratch.hint) continue;
      std::int64_t next = 0;  // number of index entries in the next level
      for (auto it = term; it != x.terms.end() && it->level == term->level; ++it) next += it->length;
      const std::int64_t domain = scratch.is_listed ? scratch.count : n_;
      if (!last && next < domain / 4 + k_) continue;
      threshold = std::max(threshold, raise_threshold(p, scratch));
      if (scratch.is_listed && !last && !(measure_.unseen(x, level) < threshold)) continue;
      if (last && !scratch.is_listed && threshold <= measure_.min_similarity) break;
      left = collect(level, threshold, last ? n_ : (next + domain / 4) / average_, scratch);
      if (left < 0) continue;
      scratch.hint = std::max(0, level - 1);
      break;
    }
    choose(p, left, term == x.terms.end(), scratch);
    return left >= 0;
  }

  // Adds a term of the query to the partial similarities of rows with an entry in the term's column.
  void add(const Term& term, std::pair<std::int64_t, std::int64_t> span, Scratch& scratch) const {
    const Postings& all = measure_.postings;
    const std::int32_t* from = all.positions.data() + all.starts[term.column];
    const std::int32_t *begin = from, *end = from + term.length;
    if (span.first > 0) begin = std::lower_bound(begin, end, span.first);
    if (span.second < n_) end = std::lower_bound(begin, end, span.second);
    if (all.weights.empty()) {
      add(begin, end - begin, [](std::int64_t) { return 1.0f; }, scratch);
      return;
    }
    const float *weights = all.weights.data() + (begin - all.positions.data()), w = term.weight;
    add(begin, end - begin, [=](std::int64_t j) { return w * weights[j]; }, scratch);
  }

  template <class Share>
  static void add(const std::int32_t* positions, std::int64_t n, const Share& share, Scratch& scratch) {
    float* partial = scratch.partial.data();
    if (!scratch.is_listed) {
      for (std::int64_t j = 0; j < n; ++j) partial[positions[j]] += share(j);
      return;
    }
    constexpr float tiny = std::numeric_limits<float>::min();
    std::int32_t* touched = scratch.touched.data();
    std::int64_t count = scratch.count;
    for (std::int64_t j = 0; j < n; ++j) {
      const float before = partial[positions[j]], sum = before + share(j);
      touched[count] = positions[j];
      count += before == 0;
      partial[positions[j]] = sum == 0 ? tiny : sum;
    }
    scratch.count = count;
  }

  // Returns a lower bound of the k-th largest similarity.
  // The bound is computed from the rows with the largest partial similarities.
  // If there are fewer than k such rows, returns min_similarity.
  double raise_threshold(std::int64_t p, Scratch& scratch) const {
    auto& list = scratch.promising;
    list.clear();
    // k_ + 1 rows are wanted, because the query itself may be one of them.
    const std::size_t wanted = k_ + 1, most = 2 * wanted + 64;
    const auto closer = [](const auto& a, const auto& b) { return a.first > b.first; };
    float threshold = 0;
    const auto offer = [&](float partial, std::int32_t q) {
      list.push_back({partial, q});
      if (list.size() < most) return;
      std::nth_element(list.begin(), list.begin() + wanted - 1, list.end(), closer);
      list.resize(wanted);
      threshold = list.back().first;
    };
    const float* partial = scratch.partial.data();
    if (scratch.is_listed) {
      for (std::int64_t j = 0; j < scratch.count; ++j)
        if (partial[scratch.touched[j]] > threshold) offer(partial[scratch.touched[j]], scratch.touched[j]);
    } else {
      for (std::int64_t first = 0; first < n_; first += kChunk) {
        const int some =
            select_larger(partial + first, std::min(n_ - first, kChunk), threshold, scratch.found.data());
        for (int j = 0; j < some; ++j) {
          const std::int64_t q = first + scratch.found[j];
          if (partial[q] > threshold) offer(partial[q], static_cast<std::int32_t>(q));
        }
      }
    }
    if (list.size() > wanted) {
      std::nth_element(list.begin(), list.begin() + wanted - 1, list.end(), closer);
      list.resize(wanted);
    }
    double least = std::numeric_limits<double>::infinity();
    std::int64_t found = 0;
    for (const auto& [_, q] : list)
      if (q != p && found < k_) {
        least = std::min(least, measure_.lower_bound(scratch.query, q));
        ++found;
      }
    return found == k_ ? least : measure_.min_similarity;
  }

  // Finds the positions of rows that can still reach the threshold, and returns the number of positions.
  // If there are more than `most` such positions, returns -1.
  std::int64_t collect(int level, double threshold, std::int64_t most, Scratch& scratch) const {
    if (scratch.is_listed) {
      const std::int64_t found =
          measure_.select_of(scratch.query, level, threshold, scratch.partial.data(), scratch.touched.data(),
                             scratch.count, scratch.found.data());
      return found > most ? -1 : found;
    }
    const auto [begin, end] = measure_.span(scratch.query, threshold);
    std::int64_t found = 0;
    for (std::int64_t first = begin; first < end; first += kChunk) {
      const std::int64_t size = std::min(end - first, kChunk);
      std::int32_t* out = scratch.found.data() + found;
      const std::int64_t more =
          measure_.select(scratch.query, level, threshold, scratch.partial.data() + first, first, size, out);
      for (std::int64_t j = 0; j < more; ++j) out[j] += static_cast<std::int32_t>(first);
      found += more;
      if (found > most) return -1;
    }
    return found;
  }

  // Selects the k nearest candidates by exact similarity, and clears the scratch space.
  // If `all` is true, all levels have been read, so the partial similarities are complete.
  void choose(std::int64_t p, std::int64_t candidates, bool all, Scratch& scratch) const {
    TopK<Candidate> best(k_);
    for (std::int64_t j = 0; j < candidates; ++j) {
      const std::int32_t q = scratch.found[j];
      if (q == p) continue;
      const double threshold = best.is_full() ? best.last().similarity : measure_.min_similarity;
      const double similarity = measure_.exact(scratch.query, q, all ? scratch.partial[q] : -1, threshold);
      if (similarity > measure_.min_similarity) best.offer({similarity, measure_.ids[q]});
    }
    scratch.best = best.sort();
    if (scratch.is_listed)
      for (std::int64_t j = 0; j < scratch.count; ++j) scratch.partial[scratch.touched[j]] = 0;
    else
      std::fill(scratch.partial.begin(), scratch.partial.end(), 0.0f);
  }

  const Measure& measure_;
  std::int64_t k_, n_, average_;
  std::vector<Scratch> scratch_;
};

// Fill `all` with the rows that may be among the k nearest rows of a row or its duplicates, nearest first.
// `row` is the first row of its group of duplicates. For a query, `row` is -1.
// `nearest` holds the k nearest distinct rows. `all` may include the row itself.
template <class Measure>
void expand_list(const Measure& measure, std::int32_t row, std::span<const Candidate> nearest, std::int64_t k,
                 std::vector<Candidate>& all) {
  all.clear();
  const auto add = [&](double similarity, std::span<const std::int32_t> group) {
    for (std::size_t s = 0; s < group.size() && s <= static_cast<std::size_t>(k); ++s)
      all.push_back({similarity, group[s]});
  };
  for (const Candidate& it : nearest) add(it.similarity, measure.duplicates.group(it.index));
  if (row >= 0 && measure.duplicates.group(row).size() > 1 &&
      measure.self_similarity(row) > measure.min_similarity)
    add(measure.self_similarity(row), measure.duplicates.group(row));
  std::sort(all.begin(), all.end());
}

// Return the neighbour lists of all rows, given the neighbour lists of the distinct rows.
// Each list has k entries. If a row has fewer than k neighbours, the remaining entries are -1.
// nearest(p, worker) returns the neighbour list of the distinct row ids[p].
// value(similarity) converts a similarity to the value in the result.
template <class Measure, class Nearest, class Value>
Neighbors all_lists(const Measure& measure, std::span<const std::int32_t> ids, std::int64_t k,
                    const Nearest& nearest, const Value& value, ThreadPool& pool, const Report& report) {
  constexpr std::int64_t grain = 16;
  const std::int64_t n = static_cast<std::int64_t>(measure.duplicates.inverse.size());
  Neighbors result;
  result.indices.assign(n * k, -1);
  result.values.assign(n * k, 0.0f);
  pool.ranges(
      static_cast<std::int64_t>(ids.size()), grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        std::vector<Candidate> all;
        for (std::int64_t p = first; p < last; ++p) {
          expand_list(measure, ids[p], nearest(p, worker), k, all);
          for (const std::int32_t i : measure.duplicates.group(ids[p])) {
            std::int64_t slot = i * k;
            for (auto it = all.begin(); it != all.end() && slot < (i + 1) * k; ++it) {
              if (it->index == i) continue;
              result.indices[slot] = it->index;
              result.values[slot++] = value(it->similarity);
            }
          }
        }
      },
      report);
  return result;
}

// Return the neighbour lists of the queries. The rows [begin, end) are the queries.
// nearest(row, worker) returns the nearest distinct rows of one query.
template <class Measure, class Nearest, class Value>
Neighbors query_lists(const Measure& measure, std::int64_t begin, std::int64_t end, std::int64_t k,
                      const Nearest& nearest, const Value& value, ThreadPool& pool, const Report& report) {
  constexpr std::int64_t grain = 16;
  Neighbors result;
  result.indices.assign((end - begin) * k, -1);
  result.values.assign((end - begin) * k, 0.0f);
  pool.ranges(
      end - begin, grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        std::vector<Candidate> all;
        for (std::int64_t i = first; i < last; ++i) {
          expand_list(measure, -1, nearest(static_cast<std::int32_t>(begin + i), worker), k, all);
          for (std::int64_t s = 0; s < std::min<std::int64_t>(k, all.size()); ++s) {
            result.indices[i * k + s] = all[s].index;
            result.values[i * k + s] = value(all[s].similarity);
          }
        }
      },
      report);
  return result;
}

}  // namespace agglo
