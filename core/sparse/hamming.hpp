// Exact k nearest neighbours of rows of bits by Hamming distance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

// n rows of `width` words. Padding bits beyond `bits` must be equal in all rows.
struct BitRows {
  std::span<const std::uint64_t> words;
  std::int64_t n, width, bits;

  const std::uint64_t* row(std::int64_t i) const { return words.data() + i * width; }
};

// Return the k nearest other rows of every row, sorted by (differing bits, smaller index). 1 <= k < n.
// Values are the number of differing bits divided by `bits`.
// Memory besides rows and result: 64 kB per thread.
Neighbors hamming_neighbors(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report = {});

// The first `base` rows are the points, and the other rows are queries.
// Return the k nearest points of each query, 1 <= k <= base.
Neighbors hamming_query(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distances of all pairs: n - 1 values per row, in increasing order of the other row's index.
std::vector<float> pairwise_hamming(const BitRows& rows, ThreadPool& pool, const Report& report = {});

// Return the similarity function that ranks neighbours in these searches. The rows must outlive it.
// The similarity is minus the number of differing bits.
PairSimilarity hamming_similarity(const BitRows& rows);

}  // namespace agglo
