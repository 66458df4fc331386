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
#include "points/duplicates.hpp"
#include "simd/filter.hpp"
#include "sparse/overlaps.hpp"

namespace agglo {
namespace {

// How the search works: the MinHash of a set is its first member in a random order of all possible members.
// The probability that two sets have the same MinHash equals their Jaccard similarity. A band is one
// partition of the sets into buckets. Sets with the same MinHash share a bucket. Further MinHashes split
// large buckets. So frequent members do not lead to large buckets. All pairs of sets in a bucket are first
// compared by sketches of a few hundred bits. If two sketches are similar, the sets are compared in full. Few
// bands with large buckets cost less than many bands with small buckets. Large buckets also cost less than
// comparing neighbours of neighbours.
//
// Bands are compared one after the other. In each band, a set is in only one bucket.
// So the result does not depend on the number of threads.
// The number of a distinct set is the number of its group of duplicates.

constexpr std::int64_t kBucket = 512;  // default number of sets per bucket
constexpr std::int64_t kBands = 4;     // number of bands that are added at once
constexpr std::int64_t kTuning = 128;  // sets in the sample that decides whether to add bands
constexpr std::int64_t kFew = 512;     // up to this number of sets, all pairs are compared
constexpr std::int64_t kRows = 16;     // buckets or sets per chunk of parallel work
constexpr double kHopeless = 1.5;      // stop if more than kHopeless * max_bands bands seem necessary
constexpr int kDepth = 8;              // after kDepth MinHashes, a bucket is split at random

// Returns a hash of a column or of the number of a set. Each seed gives another random order.
std::uint32_t hash_id(std::uint64_t number, std::uint64_t seed) {
  std::uint64_t x = (number + seed) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return static_cast<std::uint32_t>(x >> 32);
}

// One band: a partition of all distinct sets into buckets.
class Band {
 public:
  Band(const Sets& sets, std::span<const std::int32_t> ids, std::int64_t size, std::uint64_t seed)
      : sets_(sets), ids_(ids), size_(size) {
    std::mt19937_64 rng(seed);
    for (auto& it : seeds_) it = rng();
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
  // Splits the sets keyed_[begin .. end) into buckets. These sets have `depth` MinHashes in common.
  void split(std::int64_t begin, std::int64_t end, int depth) {
    for (std::int64_t s = begin; s < end; ++s)
      keyed_[s].first = depth < kDepth ? minhash(keyed_[s].second, seeds_[depth])
                                       : hash_id(keyed_[s].second, seeds_[depth]);
    std::sort(keyed_.begin() + begin, keyed_.begin() + end);
    std::int64_t open = begin;  // begin of the current bucket
    for (std::int64_t first = begin, last = begin; first < end; first = last) {
      while (last < end && keyed_[last].first == keyed_[first].first) ++last;
      // A bucket may contain sets with different MinHashes of this depth if they share a MinHash of a smaller
      // depth. At depth 0, there is no such MinHash.
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
    for (const std::int32_t column : sets_.row(ids_[g])) least = std::min(least, hash_id(column, seed));
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
        ids_(overlaps.duplicates.first),
        n_(static_cast<std::int64_t>(ids_.size())),
        k_(k),
        pool_(pool),
        lists_(n_ * k),
        sizes_(n_, 0),
        sketches_(n_) {
    for (int worker = 0; worker < pool.size(); ++worker) scratch_.emplace_back(overlaps);
    pool.ranges(n_, kRows, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t g = first; g < last; ++g) sketches_[g] = sketch(sets.row(ids_[g]));
    });
  }

  // Compare all pairs of sets.
  void compare_all() {
    std::vector<std::int32_t> all(n_);
    std::iota(all.begin(), all.end(), 0);
    compare_bucket(all, true, scratch_[0]);
  }

  // Add one band per seed, and compare the sets within each bucket of these bands.
  // If `all` is true, all pairs in a bucket are compared in full, whatever their sketches are.
  // In a band, each set is in one bucket only. So no two workers write to the neighbour list of the same set.
  void add_bands(std::span<const std::uint64_t> seeds, std::int64_t size, bool all, const Report& report) {
    const std::int64_t count = static_cast<std::int64_t>(seeds.size());
    std::vector<std::unique_ptr<const Band>> bands(count);
    pool_.run(count, [&](std::int64_t b, int) {
      bands[b] = std::make_unique<const Band>(sets_, ids_, size, seeds[b]);
    });
    for (std::int64_t b = 0; b < count; ++b) {
      pool_.ranges(bands[b]->count(), kRows, [&](std::int64_t first, std::int64_t last, int worker) {
        for (std::int64_t bucket = first; bucket < last; ++bucket)
          compare_bucket(bands[b]->bucket(bucket), all, scratch_[worker]);
      });
      if (report) report(b + 1, count);
    }
  }

  // Return the nearest of the sets that were compared with set g, in no particular order.
  // Each of these sets is given by the index of its first duplicate.
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
    std::vector<SetSketch> sketches;
    std::vector<float> slopes;
    std::vector<std::int32_t> found;
    std::vector<Candidate> list;
  };

  // Compares all pairs of sets in a bucket. Of each pair, adds each set to the neighbour list of the other if
  // it is among the k best so far. If `all` is false, a pair is skipped if the sketches of both sets are not
  // similar enough.
  void compare_bucket(std::span<const std::int32_t> members, bool all, Scratch& scratch) {
    auto& slopes = scratch.slopes;
    resize(members, scratch);
    for (std::size_t i = 0; i < members.size(); ++i) slopes[i] = all ? 0 : slope(members[i]);
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
      const std::int32_t g = members[i];
      const int count = select_overlapping(scratch.sketches[i], slopes[i], &scratch.sketches[i + 1],
                                           &slopes[i + 1], members.size() - i - 1, scratch.found.data());
      if (count == 0) continue;
      overlaps_.scatter(ids_[g], scratch.query);
      for (int s = 0; s < count; ++s) {
        const std::size_t j = i + 1 + scratch.found[s];
        const double similarity = overlaps_.similarity(scratch.query, ids_[members[j]]);
        offer(g, {similarity, members[j]});
        offer(members[j], {similarity, g});
        if (!all) slopes[j] = slope(members[j]);
      }
    }
  }

  void resize(std::span<const std::int32_t> members, Scratch& scratch) const {
    scratch.sketches.resize(members.size());
    scratch.slopes.resize(members.size());
    scratch.found.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) scratch.sketches[i] = sketches_[members[i]];
  }

  float slope(std::int32_t g) const {
    return sizes_[g] == k_ ? Overlaps::slope(lists_[g * k_].similarity) : 0;
  }

  // Adds a candidate to the neighbour list of set g if it is among the k best so far.
  // Each list is a heap whose top is the farthest candidate.
  void offer(std::int32_t g, const Candidate& it) {
    Candidate* best = lists_.data() + g * k_;
    std::int32_t& size = sizes_[g];
    const bool full = size == k_;
    if (!(it.similarity > overlaps_.min_similarity) || (full && !(it < best[0]))) return;
    if (std::any_of(best, best + size, [&](const Candidate& own) { return own.index == it.index; })) return;
    if (full) std::pop_heap(best, best + size--);
    best[size++] = it;
    std::push_heap(best, best + size);
  }

  static SetSketch sketch(std::span<const std::int32_t> members) {
    constexpr std::uint64_t bits = 64 * SetSketch::words;
    SetSketch result{};
    for (const std::int32_t column : members) {
      const std::uint64_t bit = hash_id(column, 0) * bits >> 32;
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
  std::vector<Candidate> lists_;     // k candidates per distinct set
  std::vector<std::int32_t> sizes_;  // the number of candidates of each distinct set
  std::vector<SetSketch> sketches_;
  std::vector<Scratch> scratch_;
};

// The true neighbours of a random sample of sets.
class TrueLists {
 public:
  TrueLists(const Overlaps& overlaps, std::vector<std::int32_t> rows, std::int64_t k, ThreadPool& pool)
      : overlaps_(overlaps), rows_(std::move(rows)), k_(k), lists_(rows_.size()) {
    std::vector<std::int64_t> position(overlaps.ids.size());
    for (std::size_t p = 0; p < position.size(); ++p)
      position[overlaps.duplicates.inverse[overlaps.ids[p]]] = static_cast<std::int64_t>(p);
    InvertedSearch<Overlaps> search(overlaps, k, pool.size());
    pool.run(static_cast<std::int64_t>(rows_.size()), [&](std::int64_t s, int worker) {
      lists_[s] = expand(s, search.search_row(position[overlaps.duplicates.inverse[rows_[s]]], worker));
    });
  }

  // Measure the recall of a search. Distances are compared in float32, because results hold float32 values.
  Recall measure_recall(MinHashSearch& search) const {
    std::vector<double> shares(rows_.size(), 1);
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      if (lists_[s].empty()) continue;
      const float last = distance_of(lists_[s].back().similarity);
      std::size_t right = 0;
      for (const Candidate& it : expand(s, search.list(overlaps_.duplicates.inverse[rows_[s]], 0)))
        right += distance_of(it.similarity) <= last;
      right = std::min(right, lists_[s].size());
      shares[s] = static_cast<double>(right) / static_cast<double>(lists_[s].size());
    }
    return estimate_recall(shares, k_);
  }

 private:
  std::vector<Candidate> expand(std::size_t s, std::span<const Candidate> nearest) const {
    std::vector<Candidate> all;
    expand_list(overlaps_, overlaps_.duplicates.first[overlaps_.duplicates.inverse[rows_[s]]], nearest, k_,
                all);
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

MinHashResult minhash_neighbors(const Sets& sets, std::int64_t k, const MinHashParams& given,
                                const RecallGoal& goal, std::uint64_t seed, ThreadPool& pool,
                                const Report& report) {
  const Overlaps overlaps(sets, find_duplicates(sets, pool));
  const auto& ids = overlaps.duplicates.first;
  std::mt19937_64 rng(seed);
  MinHashSearch search(sets, overlaps, k, pool);
  MinHashResult found{{}, {}, {std::max(given.bucket_size == 0 ? kBucket : given.bucket_size, k + 1), 0}};
  std::int64_t& bands = found.params.n_bands;
  const std::int64_t max_bands = goal.max_attempts;
  const auto add = [&](std::int64_t count) {
    std::vector<std::uint64_t> seeds(count);
    for (std::uint64_t& it : seeds) it = rng();
    const Report part = [&](std::int64_t done, std::int64_t) {
      if (report) report(bands + done, std::max(max_bands, given.n_bands));
    };
    search.add_bands(seeds, found.params.bucket_size, goal.recall == 1, part);
    bands += count;
  };
  const auto measure = [&] {
    return TrueLists(overlaps, random_sample(sets.n(), goal.sample, rng()), k, pool).measure_recall(search);
  };

  if (given.n_bands > 0) {
    add(given.n_bands);
    found.recall = measure();
  } else if (static_cast<std::int64_t>(ids.size()) <= kFew) {
    search.compare_all();
    found.recall = measure();
  } else {
    const TrueLists tuning(overlaps, random_sample(sets.n(), kTuning, rng()), k, pool);
    double target = goal.recall;
    for (bool enough = false; !enough;) {
      add(std::min(kBands, max_bands - bands));
      const double missed = 1 - tuning.measure_recall(search).value;
      // Estimate the number of bands that reach the target.
      // The estimate assumes that each new band misses the same share of the remaining neighbours.
      // In fact, later bands may miss a larger share, because the remaining neighbours are harder to find.
      const double needed = missed > 0 && target < 1
                                ? static_cast<double>(bands) * portable_log(1 - target) / portable_log(missed)
                                : 0;
      const bool last =
          bands >= max_bands || (!goal.accept_lower && needed > kHopeless * static_cast<double>(max_bands));
      if (1 - missed < target && !last) continue;
      // Measure the recall on a new sample. The tuning sample is biased, because it decides when to stop.
      found.recall = measure();
      enough = last || found.recall.value >= goal.recall;
      target += (1 - target) / 4;
    }
  }
  const auto nearest = [&](std::int64_t g, int worker) { return search.list(g, worker); };
  found.neighbors = all_lists(overlaps, ids, k, nearest, distance_of, pool, {});
  return found;
}

}  // namespace agglo
