#include "sparse/minhash.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/elementary.hpp"
#include "points/order.hpp"
#include "simd/filter.hpp"
#include "sparse/overlaps.hpp"

namespace agglo {
namespace {

// How it works. The MinHash of a set is the least of its members in a random order of all columns: two sets
// have the same one with a probability that is their similarity. A band puts sets of the same MinHash into a
// bucket, and splits a bucket that is too large by further MinHashes: so rare members make buckets by
// themselves, and frequent ones do no harm. The sets of a bucket are compared with each other, first by
// images of a few hundred bits, then, if these say that it matters to one of them, in full. Buckets are
// large, and bands few: that takes less than small buckets, or than to look at the neighbours of neighbours.
//
// Bands come one after the other, and a set is in one bucket of a band alone: time has no say. Distinct sets
// are known by their group of copies, whose order is that of the sets' indices.

constexpr std::int64_t kBucket = 512;  // sets in a bucket
constexpr std::int64_t kBands = 4;     // added at a time
constexpr std::int64_t kTuning = 128;  // sets that decide whether to add more
constexpr std::int64_t kFew = 512;     // sets up to which all are compared
constexpr std::int64_t kRows = 16;     // buckets, or sets, in a chunk of work
constexpr double kHopeless = 1.5;      // times the most bands
constexpr int kDepth = 8;              // MinHashes that a bucket is split by before it is cut anyhow

// A random number of a column, or of a set, in an order given by a seed.
std::uint32_t mixed(std::uint64_t number, std::uint64_t seed) {
  std::uint64_t x = (number + seed) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return static_cast<std::uint32_t>(x >> 32);
}

// A division of all distinct sets into buckets.
class Band {
 public:
  Band(const Sets& sets, std::span<const std::int32_t> ids, std::int64_t size, std::uint64_t seed)
      : sets_(sets), ids_(ids), size_(size) {
    std::mt19937_64 chance(seed);
    for (auto& it : seeds_) it = chance();
    keyed_.resize(ids.size());
    for (std::size_t g = 0; g < ids.size(); ++g) keyed_[g].second = static_cast<std::int32_t>(g);
    split(0, static_cast<std::int64_t>(ids.size()), 0);
    order_.reserve(ids.size());
    for (const auto& [_, g] : keyed_) order_.push_back(g);
    keyed_ = {};
  }

  std::int64_t count() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::span<const std::int32_t> bucket(std::int64_t b) const {
    return std::span(order_).subspan(starts_[b], starts_[b + 1] - starts_[b]);
  }

 private:
  // Puts keyed_[begin .. end) into buckets. They have `depth` MinHashes in common.
  void split(std::int64_t begin, std::int64_t end, int depth) {
    for (std::int64_t s = begin; s < end; ++s)
      keyed_[s].first =
          depth < kDepth ? minhash(keyed_[s].second, seeds_[depth]) : mixed(keyed_[s].second, seeds_[depth]);
    std::sort(keyed_.begin() + begin, keyed_.begin() + end);
    std::int64_t open = begin;  // where the bucket begins that is being filled
    for (std::int64_t first = begin, last = begin; first < end; first = last) {
      while (last < end && keyed_[last].first == keyed_[first].first) ++last;
      // At depth 0 others of the bucket would have nothing in common with these.
      if (last - open > size_ || depth == 0) {
        close(open, first);
        open = first;
      }
      if (last - first <= size_) continue;
      split(first, last, depth + 1);
      open = last;
    }
    close(open, end);
  }

  void close(std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    starts_.push_back(static_cast<std::int32_t>(end));
  }

  std::uint32_t minhash(std::int32_t g, std::uint64_t seed) const {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
    for (const std::int32_t column : sets_.row(ids_[g])) least = std::min(least, mixed(column, seed));
    return least;
  }

  const Sets& sets_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t size_;
  std::uint64_t seeds_[kDepth + 1];
  std::vector<std::pair<std::uint32_t, std::int32_t>> keyed_;
  std::vector<std::int32_t> order_, starts_{0};
};

class MinHashSearch {
 public:
  MinHashSearch(const Sets& sets, const Overlaps& overlaps, std::int64_t k, ThreadPool& pool)
      : sets_(sets),
        overlaps_(overlaps),
        ids_(overlaps.groups.first),
        n_(static_cast<std::int64_t>(ids_.size())),
        k_(k),
        pool_(pool),
        lists_(n_ * k),
        sizes_(n_, 0),
        images_(n_) {
    for (int worker = 0; worker < pool.size(); ++worker) scratch_.emplace_back(overlaps);
    pool.ranges(n_, kRows, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t g = first; g < last; ++g) images_[g] = image(sets.row(ids_[g]));
    });
  }

  // Compares all sets with each other.
  void compare_all() {
    std::vector<std::int32_t> all(n_);
    std::iota(all.begin(), all.end(), 0);
    meet(all, true, scratch_[0]);
  }

  // Compares the sets of each bucket of some more bands. A set is in one bucket of a band alone, so that
  // workers do not meet. `all`: in full, whatever images say.
  void add_bands(std::span<const std::uint64_t> seeds, std::int64_t size, bool all, const Report& report) {
    const std::int64_t count = static_cast<std::int64_t>(seeds.size());
    std::vector<std::unique_ptr<const Band>> bands(count);
    pool_.run(count, [&](std::int64_t b, int) {
      bands[b] = std::make_unique<const Band>(sets_, ids_, size, seeds[b]);
    });
    for (std::int64_t b = 0; b < count; ++b) {
      pool_.ranges(bands[b]->count(), kRows, [&](std::int64_t first, std::int64_t last, int worker) {
        for (std::int64_t bucket = first; bucket < last; ++bucket)
          meet(bands[b]->bucket(bucket), all, scratch_[worker]);
      });
      if (report) report(b + 1, count);
    }
  }

  // The closest of those that a set was compared with, by their first copies, in no order.
  std::span<const Candidate> list(std::int64_t g, int worker) {
    auto& list = scratch_[worker].list;
    list.assign(lists_.begin() + g * k_, lists_.begin() + g * k_ + sizes_[g]);
    for (Candidate& it : list) it.index = ids_[it.index];
    return list;
  }

 private:
  struct Scratch {
    explicit Scratch(const Overlaps& overlaps) : query(overlaps) {}

    Overlaps::Query query;
    std::vector<SetImage> images;
    std::vector<float> slopes;
    std::vector<std::int32_t> found;
    std::vector<Candidate> list;
  };

  // Shows sets to each other: those that seem to matter to one of two, or all.
  void meet(std::span<const std::int32_t> members, bool all, Scratch& scratch) {
    auto& slopes = scratch.slopes;
    fill(members, scratch);
    for (std::size_t i = 0; i < members.size(); ++i) slopes[i] = all ? 0 : slope(members[i]);
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
      const std::int32_t g = members[i];
      const int count = seem_overlapping(scratch.images[i], slopes[i], &scratch.images[i + 1], &slopes[i + 1],
                                         members.size() - i - 1, scratch.found.data());
      if (count == 0) continue;
      overlaps_.scatter(ids_[g], scratch.query);
      for (int s = 0; s < count; ++s) {
        const std::size_t j = i + 1 + scratch.found[s];
        const double closeness = overlaps_.closeness(scratch.query, ids_[members[j]]);
        offer(g, {closeness, members[j]});
        offer(members[j], {closeness, g});
        if (!all) slopes[j] = slope(members[j]);
      }
    }
  }

  void fill(std::span<const std::int32_t> members, Scratch& scratch) const {
    scratch.images.resize(members.size());
    scratch.slopes.resize(members.size());
    scratch.found.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) scratch.images[i] = images_[members[i]];
  }

  float slope(std::int32_t g) const {
    return sizes_[g] == k_ ? Overlaps::slope(lists_[g * k_].closeness) : 0;
  }

  // Lists are heaps, the farthest first.
  void offer(std::int32_t g, const Candidate& it) {
    Candidate* best = lists_.data() + g * k_;
    std::int32_t& size = sizes_[g];
    const bool full = size == k_;
    if (!(it.closeness > overlaps_.floor) || (full && !(it < best[0]))) return;
    if (std::any_of(best, best + size, [&](const Candidate& own) { return own.index == it.index; })) return;
    if (full) std::pop_heap(best, best + size--);
    best[size++] = it;
    std::push_heap(best, best + size);
  }

  static SetImage image(std::span<const std::int32_t> members) {
    constexpr std::uint64_t bits = 64 * SetImage::words;
    SetImage result{};
    for (const std::int32_t column : members) {
      const std::uint64_t bit = mixed(column, 0) * bits >> 32;
      result.bits[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    int set = 0;
    for (const std::uint64_t word : result.bits) set += std::popcount(word);
    result.size = static_cast<float>(members.size());
    result.share = set == 0 ? 0 : result.size / static_cast<float>(set);
    return result;
  }

  const Sets& sets_;
  const Overlaps& overlaps_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t n_, k_;
  ThreadPool& pool_;
  std::vector<Candidate> lists_;     // k of each, by groups
  std::vector<std::int32_t> sizes_;  // of the lists
  std::vector<SetImage> images_;
  std::vector<Scratch> scratch_;
};

// A random sample of sets with their true lists.
class TrueLists {
 public:
  TrueLists(const Overlaps& overlaps, std::vector<std::int32_t> rows, std::int64_t k, ThreadPool& pool)
      : overlaps_(overlaps), rows_(std::move(rows)), k_(k), lists_(rows_.size()) {
    std::vector<std::int64_t> place(overlaps.ids.size());
    for (std::size_t p = 0; p < place.size(); ++p)
      place[overlaps.groups.group[overlaps.ids[p]]] = static_cast<std::int64_t>(p);
    Inverted<Overlaps> search(overlaps, k, pool.size());
    pool.run(static_cast<std::int64_t>(rows_.size()), [&](std::int64_t s, int worker) {
      lists_[s] = expanded(s, search.nearest(place[overlaps.groups.group[rows_[s]]], worker));
    });
  }

  // How much of them was found: those count that are as close as the last, by their values as given out.
  Recall found_by(MinHashSearch& search) const {
    std::vector<double> shares(rows_.size(), 1);
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      if (lists_[s].empty()) continue;
      const float last = distance_of(lists_[s].back().closeness);
      std::size_t right = 0;
      for (const Candidate& it : expanded(s, search.list(overlaps_.groups.group[rows_[s]], 0)))
        right += distance_of(it.closeness) <= last;
      right = std::min(right, lists_[s].size());
      shares[s] = static_cast<double>(right) / static_cast<double>(lists_[s].size());
    }
    return recall_of(shares, k_);
  }

 private:
  std::vector<Candidate> expanded(std::size_t s, std::span<const Candidate> closest) const {
    std::vector<Candidate> all;
    with_copies(overlaps_, overlaps_.groups.first[overlaps_.groups.group[rows_[s]]], closest, k_, all);
    std::erase_if(all, [&](const Candidate& it) { return it.index == rows_[s]; });
    if (static_cast<std::int64_t>(all.size()) > k_) all.resize(k_);
    return all;
  }

  const Overlaps& overlaps_;
  const std::vector<std::int32_t> rows_;
  const std::int64_t k_;
  std::vector<std::vector<Candidate>> lists_;
};

}  // namespace

NearlyNearestSets nearly_nearest_sets(const Sets& sets, std::int64_t k, double recall, const Banding& wish,
                                      std::int64_t most, std::int64_t sample, std::uint64_t seed,
                                      ThreadPool& pool, const Report& report) {
  const Overlaps overlaps(sets, copies(sets, pool));
  const auto& ids = overlaps.groups.first;
  std::mt19937_64 chance(seed);
  MinHashSearch search(sets, overlaps, k, pool);
  NearlyNearestSets found{
      {}, {}, {std::max(wish.bucket == 0 ? kBucket : wish.bucket, k + 1), 0, wish.patient}};
  std::int64_t& bands = found.effort.bands;
  const auto add = [&](std::int64_t count) {
    std::vector<std::uint64_t> seeds(count);
    for (std::uint64_t& it : seeds) it = chance();
    const Report part = [&](std::int64_t done, std::int64_t) {
      if (report) report(bands + done, std::max(most, wish.bands));
    };
    search.add_bands(seeds, found.effort.bucket, recall == 1, part);
    bands += count;
  };
  const auto measured = [&] {
    return TrueLists(overlaps, random_sample(sets.n(), sample, chance()), k, pool).found_by(search);
  };

  if (wish.bands > 0) {
    add(wish.bands);
    found.recall = measured();
  } else if (static_cast<std::int64_t>(ids.size()) <= kFew) {
    search.compare_all();
    found.recall = measured();
  } else {
    const TrueLists tuning(overlaps, random_sample(sets.n(), kTuning, chance()), k, pool);
    double aim = recall;
    for (bool enough = false; !enough;) {
      add(std::min(kBands, most - bands));
      const double missed = 1 - tuning.found_by(search).value;
      // Every band misses the same share of what others have missed, or more, for that is what is hard to
      // find.
      const double needed = missed > 0 && aim < 1
                                ? static_cast<double>(bands) * portable_log(1 - aim) / portable_log(missed)
                                : 0;
      const bool last = bands >= most || (!wish.patient && needed > kHopeless * static_cast<double>(most));
      if (1 - missed < aim && !last) continue;
      // A sample that decided nothing so far: what it says is not too good.
      found.recall = measured();
      enough = last || found.recall.value >= recall;
      aim += (1 - aim) / 4;
    }
  }
  const auto closest = [&](std::int64_t g, int worker) { return search.list(g, worker); };
  found.neighbors = lists_of_all(overlaps, ids, k, closest, distance_of, pool, {});
  return found;
}

}  // namespace agglo
