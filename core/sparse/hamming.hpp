// The exact nearest neighbours of rows of bits, by the number of bits that differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

// n rows of `width` words each; the bits beyond `bits` are equal in all rows.
struct BitRows {
  std::span<const std::uint64_t> words;
  std::int64_t n, width, bits;

  const std::uint64_t* row(std::int64_t i) const { return words.data() + i * width; }
};

// The k closest other rows of every row, 1 <= k < n: the first k by (bits that differ, smaller index). The
// values are shares of `bits`, as Hamming distances commonly are. Needs 64 kB a thread beside rows and
// result.
Neighbors nearest_bits(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report = {});

// The k closest of the first `base` rows for each of the others, 1 <= k <= base, in the same way.
Neighbors nearest_bits_to(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                          const Report& report = {});

// The distance of every pair: n - 1 values for each row in turn, by the index of the other.
std::vector<float> all_pairs_of_bits(const BitRows& rows, ThreadPool& pool, const Report& report = {});

// The closeness that these searches rank by, minus the number of bits that differ, for rows that outlive it.
PairCloseness pair_closeness_of_bits(const BitRows& rows);

}  // namespace agglo
