// SIMD kernels of the neighbour searches of sparse rows, sets and bits.
// The kernels give the same results on every machine.
#pragma once

#include <cstdint>

namespace agglo {

// Each select function tests the indices j in [0, n).
// The function writes the indices that pass the test to `found`, in order, and returns their number.

// Finds the values that are larger than the threshold.
int select_larger(const float* values, std::int64_t n, float threshold, std::int32_t* found);
// Finds the rows whose similarity to the query may reach the threshold (see InvertedSearch), by the test
//   partial[j] + own * rest[j] >= threshold.
int select_products(const float* partial, const float* rest, std::int64_t n, float own, float threshold,
                    std::int32_t* found);
// Finds the sets whose similarity to the query may reach a threshold (see Overlaps::slope), by the test
//   partial[j] + min(own, rest[j]) >= slope * (size + sizes[j]).
int select_overlaps(const float* partial, const float* rest, const float* sizes, std::int64_t n, float own,
                    float size, float slope, std::int32_t* found);

// Set out[i] to the number of bits in which `row` differs from row i of n consecutive rows.
// Each row consists of `width` words of 64 bits.
void hamming_distances(const std::uint64_t* row, const std::uint64_t* rows, std::int64_t n,
                       std::int64_t width, std::int32_t* out);

// A sketch of a set: a Bloom filter of the set's members, the size of the set, and a factor `share`.
// `share` is the number of members per bit of the Bloom filter. A sketch fills one cache line.
struct alignas(64) SetSketch {
  static constexpr int words = 7;
  std::uint64_t bits[words];
  float size, share;
};

// Select those of n sets that probably have enough members in common with the set `own`.
// The number of common members is estimated from the common bits of both sketches.
// Set j is selected if this estimate is at least min(slope, slopes[j]) * (sum of both sizes).
int select_overlapping(const SetSketch& own, float slope, const SetSketch* sketches, const float* slopes,
                       std::int64_t n, std::int32_t* found);

}  // namespace agglo
