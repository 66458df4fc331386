#include "neighbors/recall.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

#include "base/topk.hpp"
#include "points/expand.hpp"
#include "points/rows.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// The reported error of a recall is kErrors standard errors of the mean recall.
// If few sample points miss neighbours, the standard error of the sample is too small.
// So the variance includes kErrors additional points that miss a typical share of their neighbours.
// The typical share is a weighted mean over the sample points and one assumed point.
// The assumed point misses the share kMiss of its neighbours, but at least one neighbour.
constexpr double kErrors = 3, kMiss = 0.2;
constexpr std::int64_t kColumns = 1024;  // points per matrix product

}  // namespace

Recall estimate_recall(std::span<const std::int64_t> right, std::int64_t k) {
  std::vector<double> shares;
  for (const std::int64_t hits : right) shares.push_back(static_cast<double>(hits) / static_cast<double>(k));
  return estimate_recall(shares, k);
}

Recall estimate_recall(std::span<const double> shares, std::int64_t k) {
  double missed = 0, squares = 0;
  for (const double share : shares) {
    missed += 1 - share;
    squares += (1 - share) * (1 - share);
  }
  const double m = static_cast<double>(shares.size());
  const double unseen = std::max(kMiss, 1 / static_cast<double>(k));
  const double typical = (squares + unseen * unseen) / (missed + unseen);
  const double spread = squares - missed * missed / m + kErrors * typical * typical;
  return {1 - missed / m, kErrors * std::sqrt(spread) / m, static_cast<std::int64_t>(shares.size())};
}

std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::int32_t> sample(std::min(n, m));
  for (std::size_t s = 0; s < sample.size(); ++s) {
    const std::uint64_t first = s * n / sample.size(), last = (s + 1) * n / sample.size();
    sample[s] = static_cast<std::int32_t>(first + rng() % (last - first));
  }
  return sample;
}

TrueNeighbors::TrueNeighbors(const Space& space, std::span<const std::int32_t> ids, std::int64_t k,
                             std::vector<std::int32_t> positions, Gemm<float>* sgemm, ThreadPool& pool,
                             const Report& report)
    : space_(space), ids_(ids), k_(k), positions_(std::move(positions)), best_(positions_.size()) {
  const std::int64_t d = space_.d(), queries = std::ssize(positions_);
  if (queries == 0) return;
  std::vector<float> sample_rows, cutoffs(queries, -kInfinity);
  gather_normalized(space_, ids_, positions_, sample_rows);
  std::mutex mutex;
  struct Found {
    std::int64_t query;
    Candidate candidate;
  };
  pool.ranges(
      std::ssize(ids_), kColumns,
      [&](std::int64_t first, std::int64_t last, int) {
        thread_local std::vector<float> columns, products;
        const std::int64_t width = last - first;
        std::vector<Found> found;
        std::vector<float> offsets(width), current;
        std::vector<std::int32_t> block(width), hits(width);
        const std::vector<float> no_cutoffs(width, kInfinity);
        std::iota(block.begin(), block.end(), static_cast<std::int32_t>(first));
        for (std::int64_t p = first; p < last; ++p) offsets[p - first] = offset(p);
        gather_normalized(space_, ids_, block, columns);
        multiply_blas(sgemm, sample_rows.data(), queries, columns.data(), width, d, products);
        {
          const std::lock_guard lock(mutex);
          current = cutoffs;
        }
        for (std::int64_t s = 0; s < queries; ++s) {
          const int count = select_above(products.data() + s * width, offsets.data(), no_cutoffs.data(), 0,
                                         current[s], 0, static_cast<int>(width), hits.data());
          for (int h = 0; h < count; ++h) {
            const std::int64_t p = first + hits[h];
            if (p != positions_[s])
              found.push_back({s, {space_.similarity(ids_[positions_[s]], ids_[p]), ids_[p]}});
          }
        }
        const std::lock_guard lock(mutex);
        for (const auto& [query, candidate] : found) {
          best_[query].push_back(candidate);
          if (std::ssize(best_[query]) >= 4 * k_ + 64) cutoffs[query] = keep_nearest(query);
        }
      },
      report);
  for (std::int64_t s = 0; s < queries; ++s) keep_nearest(s);
}

// Returns a lower bound of the offset of the point at position p.
// The similarity of two points is the product of their rows minus the offsets of both points.
float TrueNeighbors::offset(std::int64_t p) const {
  return static_cast<float>(space_.offset(ids_[p]) - float32_slack(space_, ids_[p]));
}

// Keeps the k nearest candidates of a query, nearest first.
// Returns the cutoff of the query: only candidates that may be among the k nearest reach it.
// More precisely, the product of the query and such a candidate reaches the cutoff plus the candidate's
// offset.
float TrueNeighbors::keep_nearest(std::int64_t query) {
  auto& candidates = best_[query];
  keep_first(candidates, k_);
  if (std::ssize(candidates) < k_) return -kInfinity;
  return round_down(candidates.back().similarity) + offset(positions_[query]);
}

Recall measure_recall(const AnyPoints& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::vector<std::int32_t> sample, Gemm<float>* sgemm, ThreadPool& pool,
                      const Report& report) {
  const Space space(points, metric, pool);
  std::vector<std::int32_t> all(points.n);
  std::iota(all.begin(), all.end(), 0);
  const TrueNeighbors truth(space, all, k, std::move(sample), sgemm, pool, report);
  std::vector<std::int64_t> hits(truth.positions().size(), 0);
  for (std::size_t s = 0; s < hits.size(); ++s) {
    const std::int32_t i = truth.positions()[s];
    for (const std::int32_t j : lists.subspan(i * k, k))
      hits[s] += j >= 0 && space.similarity(i, j) >= truth.best(s).back().similarity;
  }
  return estimate_recall(hits, k);
}

Recall measure_recall(const TrueNeighbors& truth, const Neighbors& found, const Space& space,
                      const Duplicates& duplicates, std::span<const std::int32_t> sample, std::size_t from,
                      std::int64_t k) {
  DuplicateExpansion expansion(space, duplicates, k);
  std::vector<std::int64_t> hits(sample.size(), 0);
  for (std::size_t s = 0; s < sample.size(); ++s) {
    const std::int32_t point = sample[s];
    float last = 0;
    std::int64_t seen = 0;
    for (const Candidate& candidate :
         expansion.expand(duplicates.first[truth.positions()[from + s]], truth.best(from + s)))
      if (candidate.index != point && seen < k) {
        last = space.value(candidate.similarity);
        ++seen;
      }
    for (std::int64_t slot = point * k; slot < (point + 1) * k; ++slot)
      hits[s] += truth.is_as_close(found.values[slot], last);
  }
  return estimate_recall(hits, k);
}

}  // namespace agglo
