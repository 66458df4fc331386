// Exact nearest neighbours of rows of bits by Hamming distance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

// n rows of `width` words. The words may have more than `bits` bits; these are equal in all rows.
struct BitRows {
  std::span<const std::uint64_t> words;
  std::int64_t n, width, bits;

  const std::uint64_t* row(std::int64_t i) const { return words.data() + i * width; }
};

// Return the k nearest other rows of every row, 1 <= k < n: the first k by (bits that differ, smaller index).
// Values are shares of `bits`. Memory besides rows and result: 64 kB per thread.
Neighbors hamming_neighbors(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report = {});

// Return the k nearest of the first `base` rows for each of the other rows, the queries. 1 <= k <= base.
Neighbors hamming_query(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distance of every pair: n - 1 values for each row in turn, ordered by the index of the other
// row.
std::vector<float> pairwise_hamming(const BitRows& rows, ThreadPool& pool, const Report& report = {});

// Return the similarity by which these searches rank: minus the number of bits that differ. The rows must
// outlive it.
PairSimilarity hamming_similarity(const BitRows& rows);

}  // namespace agglo
