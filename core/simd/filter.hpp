// The innermost loops of the searches of sparse rows and of bits, in the widest instructions that the machine
// at hand has. All give the same on every machine.
#pragma once

#include <cstdint>

namespace agglo {

// These write the numbers of those that pass, in order, and return how many they are.
// values[j] > bar
int larger(const float* values, std::int64_t n, float bar, std::int32_t* found);
// partial[j] + own * rest[j] >= bar
int passing_products(const float* partial, const float* rest, std::int64_t n, float own, float bar,
                     std::int32_t* found);
// partial[j] + min(own, rest[j]) >= slope * (size + sizes[j])
int passing_overlaps(const float* partial, const float* rest, const float* sizes, std::int64_t n, float own,
                     float size, float slope, std::int32_t* found);

// The number of bits in which a row of `width` words differs from each of n rows, one after the other.
void different_bits(const std::uint64_t* row, const std::uint64_t* rows, std::int64_t n, std::int64_t width,
                    std::int32_t* out);

// A set in short, in one line of a cache: the bits that its members fall on, how many members it has, and how
// many for each bit.
struct alignas(64) SetImage {
  static constexpr int words = 7;
  std::uint64_t bits[words];
  float size, share;
};

// Of n images, those that seem to have at least min(slope, slopes[j]) * (the sum of both sizes) members in
// common with another: bits in common tell about how many. Writes and returns as above.
int seem_overlapping(const SetImage& own, float slope, const SetImage* images, const float* slopes,
                     std::int64_t n, std::int32_t* found);

}  // namespace agglo
