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

}  // namespace agglo
