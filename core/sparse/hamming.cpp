#include "sparse/hamming.hpp"

#include <algorithm>
#include <utility>

#include "base/topk.hpp"
#include "simd/filter.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kQueries = 32;      // number of queries that are compared with one tile of rows
constexpr std::int64_t kTile = 64 * 1024;  // size of a tile of rows in bytes; a tile fits into the cache

float share(std::int32_t different, const BitRows& rows) {
  return static_cast<float>(static_cast<double>(different) / static_cast<double>(rows.bits));
}

// Returns the k nearest of the rows [0, end) for each row with index `begin` or above.
Neighbors find_nearest(const BitRows& rows, std::int64_t begin, std::int64_t end, std::int64_t k,
                       ThreadPool& pool, const Report& report) {
  const std::int64_t tile = std::max<std::int64_t>(1, kTile / (8 * rows.width));
  Neighbors result;
  result.indices.resize((rows.n - begin) * k);
  result.values.resize((rows.n - begin) * k);
  std::vector<std::vector<std::int32_t>> scratch(pool.size(), std::vector<std::int32_t>(tile));
  pool.ranges(
      rows.n - begin, kQueries,
      [&](std::int64_t from, std::int64_t to, int worker) {
        const std::int64_t first = begin + from, last = begin + to;
        std::int32_t* different = scratch[worker].data();
        // An item is a pair (number of differing bits, index).
        std::vector<TopK<std::pair<std::int32_t, std::int32_t>>> nearest(
            last - first, TopK<std::pair<std::int32_t, std::int32_t>>(k));
        for (std::int64_t left = 0; left < end; left += tile) {
          const std::int64_t right = std::min(end, left + tile);
          for (std::int64_t i = first; i < last; ++i) {
            auto& list = nearest[i - first];
            hamming_distances(rows.row(i), rows.row(left), right - left, rows.width, different);
            for (std::int64_t j = left; j < right; ++j)
              if ((!list.is_full() || different[j - left] < list.last().first) && j != i)
                list.offer({different[j - left], static_cast<std::int32_t>(j)});
          }
        }
        for (std::int64_t i = first; i < last; ++i) {
          std::int64_t slot = (i - begin) * k;
          for (const auto& [bits, j] : nearest[i - first].sort()) {
            result.indices[slot] = j;
            result.values[slot++] = share(bits, rows);
          }
        }
      },
      report);
  return result;
}

}  // namespace

Neighbors hamming_neighbors(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report) {
  return find_nearest(rows, 0, rows.n, k, pool, report);
}

Neighbors hamming_query(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report) {
  return find_nearest(rows, base, base, k, pool, report);
}

std::vector<float> pairwise_hamming(const BitRows& rows, ThreadPool& pool, const Report& report) {
  const std::int64_t n = rows.n;
  std::vector<float> values(n * (n - 1));
  std::vector<std::vector<std::int32_t>> scratch(pool.size(), std::vector<std::int32_t>(n));
  pool.run(
      n,
      [&](std::int64_t i, int worker) {
        std::int32_t* different = scratch[worker].data();
        hamming_distances(rows.row(i), rows.row(0), n, rows.width, different);
        float* out = values.data() + i * (n - 1);
        for (std::int64_t j = 0; j < n; ++j)
          if (j != i) *out++ = share(different[j], rows);
      },
      report);
  return values;
}

PairSimilarity hamming_similarity(const BitRows& rows) {
  return [rows](std::int32_t i, std::int32_t j) {
    std::int32_t different;
    hamming_distances(rows.row(i), rows.row(j), 1, rows.width, &different);
    return -static_cast<double>(different);
  };
}

}  // namespace agglo
