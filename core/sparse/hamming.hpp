// Exact k nearest neighbours of rows of bits by Hamming distance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

// A view of n rows of bits. Each row has `bits` bits, stored in `width` words.
// The remaining bits of the last word must be equal in all rows.
struct BitRows {
  std::span<const std::uint64_t> words;
  std::int64_t n, width, bits;

  const std::uint64_t* row(std::int64_t i) const { return words.data() + i * width; }
};

// Return the k nearest other rows of every row, nearest first. 1 <= k < n.
// If two rows are equally near, the row with the smaller index comes first.
// The value of a pair of rows is the number of differing bits divided by `bits`.
// Besides the rows and the result, the search needs 64 kB per thread.
Neighbors hamming_neighbors(const BitRows& rows, std::int64_t k, ThreadPool& pool, const Report& report = {});

// Return the k nearest points of each query, nearest first. 1 <= k <= base.
// The first `base` rows are the points. The other rows are the queries.
Neighbors hamming_query(const BitRows& rows, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distances of all pairs of rows: n - 1 values per row.
// The values of a row are in increasing order of the other row's index.
std::vector<float> pairwise_hamming(const BitRows& rows, ThreadPool& pool, const Report& report = {});

// Return the function by which these searches rank neighbours: minus the number of differing bits.
// The rows must outlive the returned function.
PairSimilarity hamming_similarity(const BitRows& rows);

}  // namespace agglo
