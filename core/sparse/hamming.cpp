#include "sparse/hamming.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "simd/filter.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kQueries = 32;  // rows that go through the others together, while these are in cache
constexpr std::int64_t kTile = 64 * 1024;  // bytes of the others that are compared at a time

float share(std::int32_t different, const BitRows& rows) {
  return static_cast<float>(static_cast<double>(different) / static_cast<double>(rows.bits));
}

// The k closest so far of one row, others being offered in the order of their indices.
class Closest {
 public:
  explicit Closest(std::int64_t k) : k_(k) { list_.reserve(k); }

  // What another must be less than to be among them: of equally close ones the first stay.
  std::int32_t bar() const { return bar_; }

  void offer(std::int32_t different, std::int32_t index) {
    if (static_cast<std::int64_t>(list_.size()) == k_) {
      std::pop_heap(list_.begin(), list_.end());
      list_.pop_back();
    }
    list_.push_back({different, index});
    std::push_heap(list_.begin(), list_.end());
    if (static_cast<std::int64_t>(list_.size()) == k_) bar_ = list_.front().first;
  }

  const std::vector<std::pair<std::int32_t, std::int32_t>>& sorted() {
    std::sort_heap(list_.begin(), list_.end());
    return list_;
  }

 private:
  std::int64_t k_;
  std::int32_t bar_ = std::numeric_limits<std::int32_t>::max();
  std::vector<std::pair<std::int32_t, std::int32_t>> list_;
};

// The k closest of the rows before `end`, of each row from `begin` on.
Neighbors lists(const BitRows& rows, std::int64_t begin, std::int64_t end, std::int64_t k, ThreadPool& pool,
                const Report& report) {
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
        std::vector<Closest> closest(last - first, Closest(k));
        for (std::int64_t left = 0; left < end; left += tile) {
          const std::int64_t right = std::min(end, left + tile);
          for (std::int64_t i = first; i < last; ++i) {
            Closest& list = closest[i - first];
            different_bits(rows.row(i), rows.row(left), right - left, rows.width, different);
            for (std::int64_t j = left; j < right; ++j)
              if (different[j - left] < list.bar() && j != i)
                list.offer(different[j - left], static_cast<std::int32_t>(j));
          }
        }
        for (std::int64_t i = first; i < last; ++i) {
          std::int64_t slot = (i - begin) * k;
          for (const auto& [bits, j] : closest[i - first].sorted()) {
            result.indices[slot] = j;
            result.values[slot++] = share(bits, rows);
          }
        }
      },
      report);
  return result;
}

}  // namespace

Neighbors nearest_bits(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report) {
  return lists(rows, 0, rows.n, k, pool, report);
}

Neighbors nearest_bits_to(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                          const Report& report) {
  return lists(rows, base, base, k, pool, report);
}

std::vector<float> all_pairs_of_bits(const BitRows& rows, ThreadPool& pool, const Report& report) {
  const std::int64_t n = rows.n;
  std::vector<float> values(n * (n - 1));
  std::vector<std::vector<std::int32_t>> scratch(pool.size(), std::vector<std::int32_t>(n));
  pool.run(
      n,
      [&](std::int64_t i, int worker) {
        std::int32_t* different = scratch[worker].data();
        different_bits(rows.row(i), rows.row(0), n, rows.width, different);
        float* out = values.data() + i * (n - 1);
        for (std::int64_t j = 0; j < n; ++j)
          if (j != i) *out++ = share(different[j], rows);
      },
      report);
  return values;
}

PairCloseness pair_closeness_of_bits(const BitRows& rows) {
  return [rows](std::int32_t i, std::int32_t j) {
    std::int32_t different;
    different_bits(rows.row(i), rows.row(j), 1, rows.width, &different);
    return -static_cast<double>(different);
  };
}

}  // namespace agglo
