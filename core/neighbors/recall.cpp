#include "neighbors/recall.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "base/blas.hpp"
#include "neighbors/lists.hpp"
#include "points/rows.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// The error is three standard errors of the mean recall.
// If few sample points missed neighbours, this error is too small, because their number is uncertain.
// So kErrors more points that miss a typical share of their neighbours are added to the variance.
// The typical share starts from one assumed point that misses kMiss of its neighbours, or one neighbour.
constexpr double kErrors = 3, kMiss = 0.2;
constexpr std::int64_t kRows = 256;        // rows per chunk of parallel work
constexpr std::int64_t kColumns = 1024;    // points compared with the sample at a time
constexpr std::int64_t kBeginning = 4096;  // points that bound the k-th similarity if a list is short

// Keeps the k largest values, in no order.
void keep_largest(std::vector<double>& values, std::int64_t k) {
  if (static_cast<std::int64_t>(values.size()) <= k) return;
  std::nth_element(values.begin(), values.begin() + (k - 1), values.end(), std::greater<>());
  values.resize(k);
}

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

template <class T>
Neighbors rescore_lists(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t width,
                        std::int64_t k, Metric metric, ThreadPool& pool, const Report& report) {
  const Space<T> space(points, metric, pool);
  Neighbors result;
  result.indices.assign(points.n * k, -1);
  result.values.assign(points.n * k, 0);
  pool.ranges(
      points.n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        std::vector<std::int32_t> others;
        std::vector<Candidate> list;
        for (std::int64_t i = first; i < last; ++i) {
          const auto row = lists.subspan(i * width, width);
          others.assign(row.begin(), row.end());
          std::sort(others.begin(), others.end());
          others.erase(std::unique(others.begin(), others.end()), others.end());
          list.clear();
          for (const std::int32_t j : others)
            if (j >= 0 && j < points.n && j != i) list.push_back({space.similarity(i, j), j});
          std::sort(list.begin(), list.end());
          for (std::int64_t s = 0; s < std::min<std::int64_t>(k, list.size()); ++s) {
            result.indices[i * k + s] = list[s].index;
            result.values[i * k + s] = space.value(list[s].similarity);
          }
        }
      },
      report);
  return result;
}

template <class T>
Recall measure_recall(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::span<const std::int32_t> sample, Gemm<float>* sgemm,
                      ThreadPool& pool, const Report& report) {
  const std::int64_t n = points.n, d = points.d, m = static_cast<std::int64_t>(sample.size());
  const Space<T> space(points, metric, pool);
  std::vector<std::int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  const auto offset = [&](std::int64_t i) {
    return static_cast<float>(space.offset(i) - float32_slack(space, i));
  };
  // The k-th similarity of a list is the initial bound. Only points that are at least as close are compared.
  std::vector<std::vector<double>> found(m), best(m);
  std::vector<float> cutoffs(m), sample_rows;
  for (std::int64_t s = 0; s < m; ++s) {
    const std::int32_t i = sample[s];
    for (const std::int32_t j : lists.subspan(i * k, k))
      if (j >= 0) found[s].push_back(space.similarity(i, j));
    std::vector<double> some = found[s];
    if (static_cast<std::int64_t>(some.size()) < k) {
      some.clear();
      for (std::int32_t j = 0; j < std::min(n, std::max(kBeginning, k + 1)); ++j)
        if (j != i) some.push_back(space.similarity(i, j));
      keep_largest(some, k);
    }
    const double last = *std::min_element(some.begin(), some.end());
    cutoffs[s] = std::nextafter(static_cast<float>(last), -kInfinity) + offset(i);
  }
  gather_normalized(space, all, sample, sample_rows);
  std::mutex mutex;
  pool.ranges(
      n, kColumns,
      [&](std::int64_t first, std::int64_t last, int) {
        thread_local std::vector<float> columns, products;
        const std::int64_t width = last - first;
        gather_normalized(space, all, std::span<const std::int32_t>(all).subspan(first, width), columns);
        multiply_blas(sgemm, sample_rows.data(), m, columns.data(), width, d, products);
        const std::vector<float> no_cutoffs(width, kInfinity);
        std::vector<float> offsets(width);
        for (std::int64_t p = first; p < last; ++p) offsets[p - first] = offset(p);
        std::vector<std::int32_t> hits(width);
        std::vector<double> close;
        for (std::int64_t s = 0; s < m; ++s) {
          const int count = select_above(products.data() + s * width, offsets.data(), no_cutoffs.data(), 0,
                                         cutoffs[s], 0, static_cast<int>(width), hits.data());
          close.clear();
          for (int h = 0; h < count; ++h)
            if (first + hits[h] != sample[s]) close.push_back(space.similarity(sample[s], first + hits[h]));
          if (close.empty()) continue;
          keep_largest(close, k);
          const std::lock_guard lock(mutex);
          best[s].insert(best[s].end(), close.begin(), close.end());
        }
      },
      report);
  std::vector<std::int64_t> right(m, 0);
  for (std::int64_t s = 0; s < m; ++s) {
    keep_largest(best[s], k);
    const double last = *std::min_element(best[s].begin(), best[s].end());
    for (const double similarity : found[s]) right[s] += similarity >= last;
  }
  return estimate_recall(right, k);
}

#define AGGLO_RECALL(T)                                                                                 \
  template Neighbors rescore_lists(const Points<T>&, std::span<const std::int32_t>, std::int64_t,       \
                                   std::int64_t, Metric, ThreadPool&, const Report&);                   \
  template Recall measure_recall(const Points<T>&, std::span<const std::int32_t>, std::int64_t, Metric, \
                                 std::span<const std::int32_t>, Gemm<float>*, ThreadPool&, const Report&);
AGGLO_EACH_NUMBER(AGGLO_RECALL)

}  // namespace agglo
