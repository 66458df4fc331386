// The exact nearest neighbours of sparse rows, by an inverted index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/lists.hpp"
#include "simd/filter.hpp"
#include "sparse/inverted_index.hpp"

namespace agglo {

// Finds the closest rows of each row, those that have no column in common with it not counting.
//
// How it works. Of equal rows only one is searched for. The rows that have its columns collect what the
// columns contribute, the rarest columns first, level by level. After a level the most promising rows are
// compared in full, which gives a bar: k rows are at least so close. What is left of two rows bounds what
// later levels can add. If few rows can still pass the bar, comparing these in full is cheaper than the next
// level, and is done. So the most frequent columns, which cost most and tell least, are mostly never looked
// at.
//
// All bounds hold in spite of rounding, and closeness is a function of two rows: so is the result.
//
// A Measure knows what closeness is: `ids` and `groups`, the distinct rows by their places and their copies;
// `postings` and `levels` of these; a Query, and begin(row, query), which sets its terms by level;
// lower(query, q), which closeness is not less than, and exact(query, q, partial, bar), closeness itself if
// it reaches a bar, else any less, given its partial sum if that is the whole, else -1; `floor`, which
// closeness must exceed; span(query, bar), the places that can reach a bar; and, a level having been looked
// at, unseen(query, level) bounds the closeness of rows that have none of the columns so far, and
// passing(query, level, bar, partial, first, n, found) finds which of n places can reach the bar, counted
// from `first` on, and passing_of(query, level, bar, partial, places, n, found) which of a list.
template <class Measure>
class Inverted {
 public:
  Inverted(const Measure& measure, std::int64_t k, int workers)
      : measure_(measure),
        k_(k),
        n_(static_cast<std::int64_t>(measure.ids.size())),
        average_(static_cast<std::int64_t>(measure.postings.places.size()) / n_ + kLatency) {
    scratch_.reserve(workers);
    for (int worker = 0; worker < workers; ++worker) scratch_.emplace_back(measure);
  }

  // The k closest distinct rows of that at place p, the closest first, or fewer; by the first of their
  // copies.
  std::span<const Candidate> nearest(std::int64_t p, int worker) {
    return nearest(p, measure_.ids[p], worker);
  }

  // The same of a row that is at none of the places.
  std::span<const Candidate> nearest_to(std::int32_t row, int worker) { return nearest(-1, row, worker); }

 private:
  std::span<const Candidate> nearest(std::int64_t p, std::int32_t row, int worker) {
    Scratch& scratch = scratch_[worker];
    if (scratch.partial.empty()) {
      scratch.partial.assign(n_, 0.0f);
      scratch.met.resize(n_ + 1);
      scratch.found.resize(n_);
    }
    auto& x = scratch.query;
    measure_.begin(row, x);
    std::int64_t total = 0;
    for (const Term& term : x.terms) total += term.length;
    scratch.listed = total < n_ / kSparse;
    if (!search(p, scratch)) {  // it has hardly any neighbours
      scratch.listed = true;
      search(p, scratch);
    }
    return scratch.best;
  }

  static constexpr std::int64_t kLatency = 16;  // what it costs to go to a row, in columns
  static constexpr std::int64_t kSparse = 8;    // if less than one of so many rows is met, list those
  static constexpr std::int64_t kChunk = 4096;  // places looked at in one go

  struct Scratch {
    explicit Scratch(const Measure& measure) : query(measure) {}

    typename Measure::Query query;
    std::vector<float> partial;  // of each place what the columns so far contribute; 0 if it was not met
    bool listed = false;         // whether those met are listed: never 0 then
    std::vector<std::int32_t> met, found;
    std::int64_t count = 0;  // of those met
    int hint = 0;            // the first level after which it may pay to look
    std::vector<std::pair<float, std::int32_t>> promising;
    std::vector<Candidate> best;
  };

  // False if those met would have to be listed, because all others could pass as well as they.
  bool search(std::int64_t p, Scratch& scratch) const {
    auto& x = scratch.query;
    scratch.count = 0;
    double bar = measure_.floor;
    std::int64_t left = -1;  // candidates
    auto term = x.terms.begin();
    for (int level = 0; level < Levels::count; ++level) {
      for (; term != x.terms.end() && term->level == level; ++term)
        add(*term, measure_.span(x, bar), scratch);
      const bool last = term == x.terms.end();
      if (!last && level < scratch.hint) continue;
      std::int64_t next = 0;  // what the next level costs
      for (auto it = term; it != x.terms.end() && it->level == term->level; ++it) next += it->length;
      const std::int64_t domain = scratch.listed ? scratch.count : n_;
      if (!last && next < domain / 4 + k_) continue;
      bar = std::max(bar, raised(p, scratch));
      if (scratch.listed && !last && !(measure_.unseen(x, level) < bar)) continue;
      if (last && !scratch.listed && bar <= measure_.floor) break;
      left = collect(level, bar, last ? n_ : (next + domain / 4) / average_, scratch);
      if (left < 0) continue;
      scratch.hint = std::max(0, level - 1);
      break;
    }
    choose(p, left, term == x.terms.end(), scratch);
    return left >= 0;
  }

  // Lets the rows that have a column collect it.
  void add(const Term& term, std::pair<std::int64_t, std::int64_t> span, Scratch& scratch) const {
    const Postings& all = measure_.postings;
    const std::int32_t* from = all.places.data() + all.starts[term.column];
    const std::int32_t *begin = from, *end = from + term.length;
    if (span.first > 0) begin = std::lower_bound(begin, end, span.first);
    if (span.second < n_) end = std::lower_bound(begin, end, span.second);
    if (all.weights.empty()) {
      add(begin, end - begin, [](std::int64_t) { return 1.0f; }, scratch);
      return;
    }
    const float *weights = all.weights.data() + (begin - all.places.data()), w = term.weight;
    add(begin, end - begin, [=](std::int64_t j) { return w * weights[j]; }, scratch);
  }

  template <class Share>
  static void add(const std::int32_t* places, std::int64_t n, const Share& share, Scratch& scratch) {
    float* partial = scratch.partial.data();
    if (!scratch.listed) {
      for (std::int64_t j = 0; j < n; ++j) partial[places[j]] += share(j);
      return;
    }
    constexpr float tiny = std::numeric_limits<float>::min();
    std::int32_t* met = scratch.met.data();
    std::int64_t count = scratch.count;
    for (std::int64_t j = 0; j < n; ++j) {
      const float before = partial[places[j]], sum = before + share(j);
      met[count] = places[j];
      count += before == 0;
      partial[places[j]] = sum == 0 ? tiny : sum;
    }
    scratch.count = count;
  }

  // The k-th largest closeness of those that look closest so far, if there are k.
  double raised(std::int64_t p, Scratch& scratch) const {
    auto& list = scratch.promising;
    list.clear();
    const std::size_t wanted = k_ + 1, most = 2 * wanted + 64;  // one may be the row itself
    const auto closer = [](const auto& a, const auto& b) { return a.first > b.first; };
    float bar = 0;
    const auto offer = [&](float partial, std::int32_t q) {
      list.push_back({partial, q});
      if (list.size() < most) return;
      std::nth_element(list.begin(), list.begin() + wanted - 1, list.end(), closer);
      list.resize(wanted);
      bar = list.back().first;
    };
    const float* partial = scratch.partial.data();
    if (scratch.listed) {
      for (std::int64_t j = 0; j < scratch.count; ++j)
        if (partial[scratch.met[j]] > bar) offer(partial[scratch.met[j]], scratch.met[j]);
    } else {
      for (std::int64_t first = 0; first < n_; first += kChunk) {
        const int some = larger(partial + first, std::min(n_ - first, kChunk), bar, scratch.found.data());
        for (int j = 0; j < some; ++j) {
          const std::int64_t q = first + scratch.found[j];
          if (partial[q] > bar) offer(partial[q], static_cast<std::int32_t>(q));
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
        least = std::min(least, measure_.lower(scratch.query, q));
        ++found;
      }
    return found == k_ ? least : measure_.floor;
  }

  // Finds those that can still reach the bar; -1 if they are more than `most`.
  std::int64_t collect(int level, double bar, std::int64_t most, Scratch& scratch) const {
    if (scratch.listed) {
      const std::int64_t found = measure_.passing_of(scratch.query, level, bar, scratch.partial.data(),
                                                     scratch.met.data(), scratch.count, scratch.found.data());
      return found > most ? -1 : found;
    }
    const auto [begin, end] = measure_.span(scratch.query, bar);
    std::int64_t found = 0;
    for (std::int64_t first = begin; first < end; first += kChunk) {
      const std::int64_t size = std::min(end - first, kChunk);
      std::int32_t* out = scratch.found.data() + found;
      const std::int64_t more =
          measure_.passing(scratch.query, level, bar, scratch.partial.data() + first, first, size, out);
      for (std::int64_t j = 0; j < more; ++j) out[j] += static_cast<std::int32_t>(first);
      found += more;
      if (found > most) return -1;
    }
    return found;
  }

  // The best of the candidates, compared in full; leaves the scratch clean. `all`: partial sums are whole
  // ones.
  void choose(std::int64_t p, std::int64_t candidates, bool all, Scratch& scratch) const {
    auto& best = scratch.best;
    best.clear();
    for (std::int64_t j = 0; j < candidates; ++j) {
      const std::int32_t q = scratch.found[j];
      if (q == p) continue;
      const bool full = static_cast<std::int64_t>(best.size()) == k_;
      const double bar = full ? best.front().closeness : measure_.floor;
      const Candidate it{measure_.exact(scratch.query, q, all ? scratch.partial[q] : -1, bar),
                         measure_.ids[q]};
      if (!(it.closeness > measure_.floor)) continue;
      if (full && !(it < best.front())) continue;
      if (full) {
        std::pop_heap(best.begin(), best.end());
        best.back() = it;
      } else {
        best.push_back(it);
      }
      std::push_heap(best.begin(), best.end());
    }
    std::sort_heap(best.begin(), best.end());
    if (scratch.listed)
      for (std::int64_t j = 0; j < scratch.count; ++j) scratch.partial[scratch.met[j]] = 0;
    else
      std::fill(scratch.partial.begin(), scratch.partial.end(), 0.0f);
  }

  const Measure& measure_;
  std::int64_t k_, n_, average_;
  std::vector<Scratch> scratch_;
};

// All that can be among the k closest of a row or its copies, in order, from its closest distinct rows; some
// may be the row itself. `row` is the first of its copies; -1 if it is none of the rows.
template <class Measure>
void with_copies(const Measure& measure, std::int32_t row, std::span<const Candidate> closest, std::int64_t k,
                 std::vector<Candidate>& all) {
  all.clear();
  const auto add = [&](double closeness, std::span<const std::int32_t> group) {
    for (std::size_t s = 0; s < group.size() && s <= static_cast<std::size_t>(k); ++s)
      all.push_back({closeness, group[s]});
  };
  for (const Candidate& it : closest) add(it.closeness, measure.groups.of(it.index));
  if (row >= 0 && measure.groups.of(row).size() > 1 && measure.self(row) > measure.floor)
    add(measure.self(row), measure.groups.of(row));
  std::sort(all.begin(), all.end());
}

// The lists of all rows, from those of the distinct ones: k of each in turn, -1 where there are no more.
// closest(p, worker) gives the list of place p, ids[p] being its row; value(closeness) what it is in the
// result.
template <class Measure, class Closest, class Value>
Neighbors lists_of_all(const Measure& measure, std::span<const std::int32_t> ids, std::int64_t k,
                       const Closest& closest, const Value& value, ThreadPool& pool, const Report& report) {
  constexpr std::int64_t grain = 16;
  const std::int64_t n = static_cast<std::int64_t>(measure.groups.group.size());
  Neighbors result;
  result.indices.assign(n * k, -1);
  result.values.assign(n * k, 0.0f);
  pool.ranges(
      static_cast<std::int64_t>(ids.size()), grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        std::vector<Candidate> all;
        for (std::int64_t p = first; p < last; ++p) {
          with_copies(measure, ids[p], closest(p, worker), k, all);
          for (const std::int32_t i : measure.groups.of(ids[p])) {
            std::int64_t slot = i * k;
            for (auto it = all.begin(); it != all.end() && slot < (i + 1) * k; ++it) {
              if (it->index == i) continue;
              result.indices[slot] = it->index;
              result.values[slot++] = value(it->closeness);
            }
          }
        }
      },
      report);
  return result;
}

// The lists of rows [begin, end), none of which is among those that are searched: closest(row, worker) gives
// that of a row.
template <class Measure, class Closest, class Value>
Neighbors lists_of_guests(const Measure& measure, std::int64_t begin, std::int64_t end, std::int64_t k,
                          const Closest& closest, const Value& value, ThreadPool& pool,
                          const Report& report) {
  constexpr std::int64_t grain = 16;
  Neighbors result;
  result.indices.assign((end - begin) * k, -1);
  result.values.assign((end - begin) * k, 0.0f);
  pool.ranges(
      end - begin, grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        std::vector<Candidate> all;
        for (std::int64_t i = first; i < last; ++i) {
          with_copies(measure, -1, closest(static_cast<std::int32_t>(begin + i), worker), k, all);
          for (std::int64_t s = 0; s < std::min<std::int64_t>(k, all.size()); ++s) {
            result.indices[i * k + s] = all[s].index;
            result.values[i * k + s] = value(all[s].closeness);
          }
        }
      },
      report);
  return result;
}

}  // namespace agglo
