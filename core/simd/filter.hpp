// SIMD kernels of the searches of sparse rows, sets and bits, with the same result on every machine.
#pragma once

#include <cstdint>

namespace agglo {

// Each select function writes the indices j that pass a test to `found`, in order, and returns their number.
int select_larger(const float* values, std::int64_t n, float threshold, std::int32_t* found);
// Tests partial[j] + own * rest[j] >= threshold.
int select_products(const float* partial, const float* rest, std::int64_t n, float own, float threshold,
                    std::int32_t* found);
// Tests partial[j] + min(own, rest[j]) >= slope * (size + sizes[j]).
int select_overlaps(const float* partial, const float* rest, const float* sizes, std::int64_t n, float own,
                    float size, float slope, std::int32_t* found);

// Count the bits in which a row of `width` words differs from each of n consecutive rows.
void hamming_distances(const std::uint64_t* row, const std::uint64_t* rows, std::int64_t n,
                       std::int64_t width, std::int32_t* out);

// A sketch of a set: a Bloom filter of its members, its size, and its number of members per bit.
// A sketch fills one cache line.
struct alignas(64) SetSketch {
  static constexpr int words = 7;
  std::uint64_t bits[words];
  float size, share;
};

// Select the sets j, among n sets, that seem to have enough members in common with the set `own`.
// The number of common members is estimated from common bits.
// This number must be at least min(slope, slopes[j]) * (sum of both sizes).
int select_overlapping(const SetSketch& own, float slope, const SetSketch* sketches, const float* slopes,
                       std::int64_t n, std::int32_t* found);

}  // namespace agglo
