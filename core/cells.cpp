#include "cells.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "expand.hpp"
#include "kernels.hpp"
#include "lists.hpp"
#include "multiply.hpp"
#include "order.hpp"
#include "partition.hpp"

namespace agglo {
namespace {

// How it works. The points are put into cells of a few hundred (partition.hpp). Cell by cell, the points at
// home there are compared with each other and with those that visit, by products of blocks that show every
// pair to the lists of both its points. A point visits the cells whose centres are closest to it. What that
// misses are mostly pairs across cells, both of whose points are close to a third: so a last pass compares
// the neighbours of every point with each other, where they have not met in a cell.
//
// Lists take offers in any order and forget only what a bound excludes: the result is a function of the set
// of pairs that are looked at, and that set does not depend on time.

constexpr std::int64_t kStrip = 128;        // rows of a cell multiplied at a time
constexpr std::int64_t kGuests = 1024;      // columns of them
constexpr std::int64_t kRows = 256;         // rows in a chunk of other work
constexpr std::int64_t kStripes = 1 << 12;  // locks of the lists
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The lists of all points, which any worker may offer to.
template <class T>
class SharedLists {
 public:
  SharedLists(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t k)
      : lists(space, ids, k), locks_(std::make_unique<std::atomic_flag[]>(kStripes)) {}

  // Returns how close to p others must be from now on, as Lists::reach().
  float offer(std::int64_t p, std::int64_t q, float upper) {
    const Hold hold(locks_[p % kStripes]);
    lists.offer_again(p, q, upper);
    return lists.reach()[p];
  }

  float reach(std::int64_t p) {
    const Hold hold(locks_[p % kStripes]);
    return lists.reach()[p];
  }

  Lists<T> lists;

 private:
  class Hold {
   public:
    explicit Hold(std::atomic_flag& lock) : lock_(lock) {
      while (lock_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Hold() { lock_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& lock_;
  };

  std::unique_ptr<std::atomic_flag[]> locks_;
};

// Rows of points, with what is needed to tell which of their products matter.
struct Block {
  std::span<const std::int32_t> places;
  std::vector<float> images, offsets, reaches;

  std::int64_t size() const { return static_cast<std::int64_t>(places.size()); }
};

struct Bench {
  Block hosts, guests;
  std::vector<float> products;
  std::vector<std::int32_t> found;
};

// The k closest of a sample of the points, among all.
template <class T>
class Truth {
 public:
  Truth(const Space<T>& space, std::span<const std::int32_t> ids, const Lists<T>& lists, std::int64_t k,
        std::vector<std::int32_t> places)
      : space_(space), ids_(ids), lists_(lists), k_(k), places_(std::move(places)), best_(places_.size()) {}

  std::span<const std::int32_t> places() const { return places_; }
  std::span<const Candidate> best(std::size_t query) const { return best_[query]; }

  void find(const Partition& cells, Gemm<float>* sgemm, Team& team, const Report& report) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       queries = static_cast<std::int64_t>(places_.size());
    std::vector<float> images, reaches(queries, -kInfinity);
    gather(space_, ids_, places_, images);
    // Those at home with a point give a first idea of how close its k-th is.
    for (std::int64_t s = 0; s < queries; ++s) {
      for (const std::int32_t p : cells.members(cells.home(places_[s])))
        if (p != places_[s]) best_[s].push_back({space_.closeness(ids_[places_[s]], ids_[p]), ids_[p]});
      reaches[s] = trimmed(s);
      best_[s].clear();
    }
    std::mutex mutex;
    struct Found {
      std::int64_t query;
      Candidate candidate;
    };
    team.ranges(
        n, kGuests,
        [&](std::int64_t first, std::int64_t last, int) {
          thread_local std::vector<float> columns, products;
          thread_local std::vector<std::int32_t> block, hits;
          std::vector<Found> found;
          const std::vector<float> nobody(last - first, kInfinity);
          block.resize(last - first);
          hits.resize(last - first);
          std::iota(block.begin(), block.end(), static_cast<std::int32_t>(first));
          gather(space_, ids_, block, columns);
          multiply(sgemm, images.data(), queries, columns.data(), last - first, d, products);
          std::vector<float> bars;
          {
            const std::lock_guard lock(mutex);
            bars = reaches;
          }
          for (std::int64_t s = 0; s < queries; ++s) {
            const int count =
                survivors(products.data() + s * (last - first), lists_.offset() + first, nobody.data(), 0,
                          bars[s], 0, static_cast<int>(last - first), hits.data());
            for (int h = 0; h < count; ++h) {
              const std::int64_t p = first + hits[h];
              if (p != places_[s])
                found.push_back({s, {space_.closeness(ids_[places_[s]], ids_[p]), ids_[p]}});
            }
          }
          const std::lock_guard lock(mutex);
          for (const auto& [query, candidate] : found) {
            best_[query].push_back(candidate);
            if (static_cast<std::int64_t>(best_[query].size()) >= 4 * k_ + 64)
              reaches[query] = trimmed(query);
          }
        },
        report);
    for (std::int64_t s = 0; s < queries; ++s) trimmed(s);
  }

 private:
  // Keeps the k closest, in order, and returns how close others must be.
  float trimmed(std::int64_t query) {
    auto& list = best_[query];
    std::sort(list.begin(), list.end());
    if (static_cast<std::int64_t>(list.size()) < k_) return -kInfinity;
    list.resize(k_);
    const double last = list.back().closeness;
    float bar = static_cast<float>(last);
    if (bar > last) bar = std::nextafter(bar, -kInfinity);
    return bar + lists_.offset()[places_[query]];
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const Lists<T>& lists_;
  const std::int64_t k_;
  std::vector<std::int32_t> places_;
  std::vector<std::vector<Candidate>> best_;
};

template <class T>
class Search {
 public:
  Search(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t k, Gemm<float>* sgemm,
         Team& team)
      : space_(space),
        ids_(ids),
        k_(k),
        sgemm_(sgemm),
        team_(team),
        shared_(space, ids, k),
        benches_(team.size()) {}

  Lists<T>& lists() { return shared_.lists; }

  // Shows the members of every cell to each other. To be done first, so that lists know early what matters.
  void meet(const Partition& cells, bool first, const Report& report) {
    team_.run(
        cells.count(),
        [&](std::int64_t cell, int worker) {
          Bench& bench = benches_[worker];
          fill(bench.hosts, cells.members(cell));
          if (first)
            begin(bench);
          else
            compare(bench, bench.hosts, true);
        },
        report);
  }

  // Shows the members of every cell to those who give it a rank in [from, to).
  void visit(const Partition& cells, std::int64_t from, std::int64_t to, const Report& report) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), count = cells.count();
    std::vector<std::int64_t> indptr(count + 1, 0);
    const auto each_visit = [&](const auto& call) {
      for (std::int64_t p = 0; p < n; ++p)
        for (std::int64_t r = from; r < to; ++r)
          if (const std::int32_t cell = cells.probe(p, r); cell != cells.home(p)) call(p, cell);
    };
    each_visit([&](std::int64_t, std::int32_t cell) { ++indptr[cell + 1]; });
    std::partial_sum(indptr.begin(), indptr.end(), indptr.begin());
    std::vector<std::int32_t> guests(indptr.back());
    std::vector<std::int64_t> place(indptr.begin(), indptr.end() - 1);
    each_visit(
        [&](std::int64_t p, std::int32_t cell) { guests[place[cell]++] = static_cast<std::int32_t>(p); });

    team_.run(
        count,
        [&](std::int64_t cell, int worker) {
          Bench& bench = benches_[worker];
          fill(bench.hosts, cells.members(cell));
          const auto all =
              std::span<const std::int32_t>(guests).subspan(indptr[cell], indptr[cell + 1] - indptr[cell]);
          for (std::size_t first = 0; first < all.size(); first += kGuests) {
            fill(bench.guests, all.subspan(first, std::min<std::size_t>(kGuests, all.size() - first)));
            compare(bench, bench.guests, false);
          }
        },
        report);
  }

  // Compares the neighbours of every point with each other, unless they have met in a cell.
  void join(const Partition& cells, std::int64_t visits, std::uint64_t seed, const Report& report) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), cap = k_;
    std::vector<std::int32_t> forward(n * k_, -1);
    team_.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t p = first; p < last; ++p) {
        const auto closest = shared_.lists.settle(p);
        std::copy(closest.begin(), closest.end(), forward.begin() + p * k_);
        std::sort(forward.begin() + p * k_, forward.begin() + p * k_ + closest.size());
      }
    });
    const std::vector<float> bars(shared_.lists.bar(), shared_.lists.bar() + n);
    // Of those that have a point as their neighbour, a random few.
    std::vector<std::int32_t> backward(n * cap, -1), counts(n, 0);
    std::mt19937_64 chance(seed);
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t s = p * k_; s < (p + 1) * k_; ++s) {
        const std::int32_t q = forward[s];
        if (q < 0) break;
        std::int64_t slot = counts[q]++;
        if (slot >= cap) slot = static_cast<std::int64_t>(chance() % static_cast<std::uint64_t>(slot + 1));
        if (slot < cap) backward[q * cap + slot] = static_cast<std::int32_t>(p);
      }

    team_.ranges(
        n, kRows,
        [&](std::int64_t first, std::int64_t last, int) {
          Around around;
          auto& places = around.places;
          for (std::int64_t v = first; v < last; ++v) {
            places.clear();
            for (std::int64_t s = v * k_; s < (v + 1) * k_ && forward[s] >= 0; ++s)
              places.push_back(forward[s]);
            const auto own = static_cast<std::ptrdiff_t>(places.size());
            for (std::int64_t s = v * cap; s < (v + 1) * cap && backward[s] >= 0; ++s)
              if (!std::binary_search(places.begin(), places.begin() + own, backward[s]))
                places.push_back(backward[s]);
            compare_all(around, cells, visits, bars);
          }
        },
        report);
  }

 private:
  void fill(Block& block, std::span<const std::int32_t> places) {
    block.places = places;
    gather(space_, ids_, places, block.images);
    block.offsets.resize(places.size());
    block.reaches.resize(places.size());
    for (std::size_t s = 0; s < places.size(); ++s) {
      block.offsets[s] = shared_.lists.offset()[places[s]];
      block.reaches[s] = shared_.reach(places[s]);
    }
  }

  // Begins the lists of a cell's members with each other. Every pair is multiplied twice, which costs less
  // than to offer a list what it will soon forget.
  void begin(Bench& bench) {
    const std::int64_t m = bench.hosts.size(), d = space_.d();
    for (std::int64_t top = 0; top < m; top += kStrip) {
      const std::int64_t bottom = std::min(m, top + kStrip);
      multiply(sgemm_, bench.hosts.images.data() + top * d, bottom - top, bench.hosts.images.data(), m, d,
               bench.products);
      for (std::int64_t i = top; i < bottom; ++i)
        shared_.lists.offer_first(bench.hosts.places[i], bench.hosts.places,
                                  bench.products.data() + (i - top) * m);
    }
  }

  // Shows all pairs of a host and a column to the lists of both; of hosts with themselves each pair once.
  void compare(Bench& bench, Block& columns, bool themselves) {
    Block& hosts = bench.hosts;
    const std::int64_t d = space_.d();
    bench.found.resize(std::max<std::size_t>(bench.found.size(), columns.places.size()));
    for (std::int64_t top = 0; top < hosts.size(); top += kStrip) {
      const std::int64_t bottom = std::min(hosts.size(), top + kStrip), left = themselves ? top : 0;
      const std::int64_t width = columns.size() - left;
      multiply(sgemm_, hosts.images.data() + top * d, bottom - top, columns.images.data() + left * d, width,
               d, bench.products);
      for (std::int64_t i = top; i < bottom; ++i) {
        const float* products = bench.products.data() + (i - top) * width;
        const std::int32_t p = hosts.places[i];
        const int count =
            survivors(products, columns.offsets.data() + left, columns.reaches.data() + left,
                      hosts.offsets[i], hosts.reaches[i], themselves ? static_cast<int>(i - left) + 1 : 0,
                      static_cast<int>(width), bench.found.data());
        for (int s = 0; s < count; ++s) {
          const std::int64_t j = left + bench.found[s];
          const float product = products[bench.found[s]];
          const float upper = (product - hosts.offsets[i]) - columns.offsets[j];
          if (product >= hosts.reaches[i] + columns.offsets[j])
            hosts.reaches[i] = shared_.offer(p, columns.places[j], upper);
          if (product >= columns.reaches[j] + hosts.offsets[i])
            columns.reaches[j] = shared_.offer(columns.places[j], p, upper);
        }
      }
    }
  }

  // What a worker needs to compare the neighbours of a point: their cells, numbered from 0 in the order of
  // appearance, and as a set of bits those that each of them has visited.
  struct Around {
    std::vector<std::int32_t> places, cells, at;
    std::vector<std::uint64_t> visited;
  };

  void compare_all(Around& around, const Partition& cells, std::int64_t visits, std::span<const float> bars) {
    constexpr std::size_t most = 64;  // cells that a set holds; pairs in others are compared, again or not
    auto& [places, known, at, visited] = around;
    const std::size_t m = places.size();
    known.clear();
    at.resize(m);
    visited.assign(m, 0);
    for (std::size_t i = 0; i < m; ++i) {
      const std::int32_t home = cells.home(places[i]);
      at[i] = static_cast<std::int32_t>(std::find(known.begin(), known.end(), home) - known.begin());
      if (at[i] == static_cast<std::int32_t>(known.size())) known.push_back(home);
    }
    if (known.size() == 1) return;
    if (known.size() > most) known.resize(most);
    for (std::size_t i = 0; i < m; ++i) {
      if (at[i] < static_cast<std::int32_t>(most)) visited[i] |= std::uint64_t{1} << at[i];
      for (std::int64_t r = 0; r < visits; ++r) {
        const std::int32_t cell = cells.probe(places[i], r);
        for (std::size_t c = 0; c < known.size(); ++c) visited[i] |= std::uint64_t{known[c] == cell} << c;
      }
    }
    const auto has = [&](std::size_t i, std::size_t j) {
      return at[j] < static_cast<std::int32_t>(most) && (visited[i] >> at[j] & 1);
    };
    const float* slack = shared_.lists.slack();
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = i + 1; j < m; ++j) {
        if (has(i, j) || has(j, i)) continue;
        const std::int32_t p = places[i], q = places[j];
        const float upper =
            static_cast<float>(space_.quick_closeness(ids_[p], ids_[q])) + (slack[p] + slack[q]);
        if (upper >= bars[p]) shared_.offer(p, q, upper);
        if (upper >= bars[q]) shared_.offer(q, p, upper);
      }
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_;
  Gemm<float>* const sgemm_;
  Team& team_;
  SharedLists<T> shared_;
  std::vector<Bench> benches_;
};

// The share of the true neighbours that a point has met in a cell once it has visited f of them, for every f.
template <class T>
std::vector<double> met(const Truth<T>& truth, const Partition& cells,
                        std::span<const std::int32_t> place_of) {
  std::vector<double> share(cells.ranks() + 1, 0.0);
  double pairs = 0;
  for (std::size_t s = 0; s < truth.places().size(); ++s) {
    const std::int32_t p = truth.places()[s];
    for (const Candidate& candidate : truth.best(s)) {
      const std::int32_t q = place_of[candidate.index];
      std::int64_t rank = cells.home(p) == cells.home(q)
                              ? 0
                              : std::min(cells.rank(p, cells.home(q)), cells.rank(q, cells.home(p))) + 1;
      for (; rank <= cells.ranks(); ++rank) ++share[rank];
      ++pairs;
    }
  }
  for (double& value : share) value /= std::max(pairs, 1.0);
  return share;
}

// The share of a sample's lists that is as close as the k-th of the true list.
template <class T>
Recall measured(const Truth<T>& truth, Lists<T>& lists, const Space<T>& space, const Copies& groups,
                std::span<const std::int32_t> ids, std::span<const std::int32_t> sample, std::int64_t k) {
  Expansion<T> expansion(space, groups, k);
  std::vector<std::int64_t> hits(sample.size(), 0);
  for (std::size_t s = 0; s < sample.size(); ++s) {
    const std::int32_t point = sample[s], p = truth.places()[s];
    const auto first = [&](std::span<const Candidate> list) {
      std::vector<double> values;
      for (const Candidate& candidate : expansion.of(ids[p], list))
        if (candidate.index != point && static_cast<std::int64_t>(values.size()) < k)
          values.push_back(candidate.closeness);
      return values;
    };
    const auto right = first(truth.best(s)), found = first(lists.best(p));
    for (const double closeness : found) hits[s] += closeness >= right.back();
  }
  return recall_of(hits, k);
}

}  // namespace

template <class T>
Approximation nearly_nearest(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                             const Effort& wish, std::int64_t sample, std::int64_t patience,
                             std::uint64_t seed, const Blas& blas, Team& team, const Report& report) {
  const std::int64_t n = points.n;
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(n));
  if (k < 1 || k >= n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(n - 1) + ", got " + std::to_string(k));
  constexpr std::int64_t all = 1000;
  // Stages report on a share of the whole; one that is done again does not go back.
  std::int64_t highest = 0;
  const auto part = [&](std::int64_t from, std::int64_t to) -> Report {
    if (!report) return {};
    return [&report, &highest, from, to](std::int64_t done, std::int64_t total) {
      highest = std::max(highest, from + (to - from) * done / std::max<std::int64_t>(total, 1));
      report(highest, all);
    };
  };
  const Space<T> space(points, metric, team);
  const Copies groups = copies(points, team);
  const std::span<const std::int32_t> ids = groups.first;
  const std::int64_t distinct = static_cast<std::int64_t>(ids.size()), wanted = std::min(k, distinct - 1);
  Effort effort = wish;
  if (effort.size == 0) effort.size = std::max<std::int64_t>(256, 4 * (k + 1));
  effort.size = std::max(effort.size, 4 * (wanted + 1));
  if (wanted == 0) {
    Lists<T> none(space, ids, 0);
    return {expanded(space, groups, ids, none, k, team, part(all, all)), {1, 0, 0}, {effort.size, 0, 0, 0}};
  }

  Search<T> search(space, ids, wanted, blas.sgemm, team);
  std::mt19937_64 chance(seed);
  std::vector<std::int32_t> chosen(std::min(sample, n)), places;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    const std::uint64_t first = s * n / chosen.size(), last = (s + 1) * n / chosen.size();
    chosen[s] = static_cast<std::int32_t>(first + chance() % (last - first));
    places.push_back(groups.group[chosen[s]]);
  }
  Truth<T> truth(space, ids, search.lists(), wanted, places);
  Recall reached{0, 1, 0};
  std::int64_t visits = 0;
  effort.rounds = effort.joins = effort.visits = 0;
  const double enough = recall;
  do {
    const bool first = effort.rounds == 0;
    const Partition cells(space, ids, effort.size, wanted + 1, metric == Metric::dot, chance(), blas.sgemm,
                          team, first ? part(0, 200) : part(all, all));
    if (first && !places.empty()) truth.find(cells, blas.sgemm, team, part(200, 300));
    ++effort.rounds;
    visits = std::min(wish.visits, cells.ranks());
    std::int64_t joins = wish.joins;
    if (wish.visits == 0) {
      const auto share = met(truth, cells, groups.group);
      // A pass over the neighbours of neighbours finds most of what is missing, if not too much is.
      const double need = wish.joins == 0 ? recall : std::max(0.5, 1 - 5 * (1 - recall));
      for (visits = 1; visits < cells.ranks() && share[visits] < need;) ++visits;
    }
    search.meet(cells, first, first ? part(300, 400) : part(all, all));
    search.visit(cells, 0, visits, first ? part(400, 700) : part(all, all));
    effort.visits += visits;
    for (std::int64_t done = 0; joins < 0 || done < joins; ++done) {
      if (joins < 0) {
        reached = measured(truth, search.lists(), space, groups, ids, chosen, k);
        if (reached.value >= enough || done == 2) break;
      }
      search.join(cells, visits, chance(), first && done == 0 ? part(700, 950) : part(all, all));
      ++effort.joins;
    }
    reached = measured(truth, search.lists(), space, groups, ids, chosen, k);
  } while (wish.visits == 0 && reached.value < enough && effort.rounds < patience);
  return {expanded(space, groups, ids, search.lists(), k, team, part(950, all)), reached, effort};
}

#define AGGLO_CELLS(T)                                                                                 \
  template Approximation nearly_nearest(const Points<T>&, std::int64_t, Metric, double, const Effort&, \
                                        std::int64_t, std::int64_t, std::uint64_t, const Blas&, Team&, \
                                        const Report&);
AGGLO_EACH_NUMBER(AGGLO_CELLS)

}  // namespace agglo
