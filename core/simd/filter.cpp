#include "simd/filter.hpp"

#include <algorithm>
#include <bit>

#include "simd/dispatch.hpp"

namespace agglo {
namespace {

// Every loop is compiled twice: once without AVX2 instructions, and once with them.

[[gnu::always_inline]] inline void count_bits(const std::uint64_t* row, const std::uint64_t* rows,
                                              std::int64_t n, std::int64_t width, std::int32_t* out) {
  for (std::int64_t i = 0; i < n; ++i, rows += width) {
    std::int64_t sum = 0;
    for (std::int64_t j = 0; j < width; ++j) sum += std::popcount(row[j] ^ rows[j]);
    out[i] = static_cast<std::int32_t>(sum);
  }
}

// Few items pass the test. So the loop first tests whether any of 32 items passes.
template <class Test>
[[gnu::always_inline]] inline int select_if(std::int64_t n, std::int32_t* found, const Test& test) {
  constexpr std::int64_t run = 32;
  int count = 0;
  std::int64_t j = 0;
  const auto one_by_one = [&](std::int64_t end) __attribute__((always_inline)) {
    for (std::int64_t i = j; i < end; ++i) {
      found[count] = static_cast<std::int32_t>(i);
      count += test(i);
    }
  };
  for (; j + run <= n; j += run) {
    int any = 0;
    for (std::int64_t i = 0; i < run; ++i) any |= test(j + i);
    if (any) one_by_one(j + run);
  }
  one_by_one(n);
  return count;
}

[[gnu::always_inline]] inline int find_larger(const float* values, std::int64_t n, float threshold,
                                              std::int32_t* found) {
  return select_if(n, found, [=](std::int64_t j) { return static_cast<int>(values[j] > threshold); });
}

[[gnu::always_inline]] inline int find_products(const float* partial, const float* rest, std::int64_t n,
                                                float own, float threshold, std::int32_t* found) {
  return select_if(n, found,
                   [=](std::int64_t j) { return static_cast<int>(partial[j] + own * rest[j] >= threshold); });
}

[[gnu::always_inline]] inline int find_overlaps(const float* partial, const float* rest, const float* sizes,
                                                std::int64_t n, float own, float size, float slope,
                                                std::int32_t* found) {
  return select_if(n, found, [=](std::int64_t j) {
    return static_cast<int>(partial[j] + std::min(own, rest[j]) >= slope * (size + sizes[j]));
  });
}

[[gnu::always_inline]] inline int find_seeming(const SetSketch& own, float slope, const SetSketch* sketches,
                                               const float* slopes, std::int64_t n, std::int32_t* found) {
  int count = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const SetSketch& other = sketches[j];
    std::int64_t both = 0;
    for (int w = 0; w < SetSketch::words; ++w) both += std::popcount(own.bits[w] & other.bits[w]);
    found[count] = static_cast<std::int32_t>(j);
    count += static_cast<float>(both) * std::min(own.share, other.share) >=
             std::min(slope, slopes[j]) * (own.size + other.size);
  }
  return count;
}

#ifdef AGGLO_X86

[[AGGLO_AVX2]] int find_larger_avx2(const float* values, std::int64_t n, float threshold,
                                    std::int32_t* found) {
  return find_larger(values, n, threshold, found);
}

[[AGGLO_AVX2]] int find_products_avx2(const float* partial, const float* rest, std::int64_t n, float own,
                                      float threshold, std::int32_t* found) {
  return find_products(partial, rest, n, own, threshold, found);
}

[[AGGLO_AVX2]] int find_overlaps_avx2(const float* partial, const float* rest, const float* sizes,
                                      std::int64_t n, float own, float size, float slope,
                                      std::int32_t* found) {
  return find_overlaps(partial, rest, sizes, n, own, size, slope, found);
}

[[AGGLO_AVX2]] void count_bits_avx2(const std::uint64_t* row, const std::uint64_t* rows, std::int64_t n,
                                    std::int64_t width, std::int32_t* out) {
  // A constant width lets the compiler unroll the loop over words.
  switch (width) {
    case 1:
      return count_bits(row, rows, n, 1, out);
    case 2:
      return count_bits(row, rows, n, 2, out);
    case 4:
      return count_bits(row, rows, n, 4, out);
    default:
      return count_bits(row, rows, n, width, out);
  }
}

[[AGGLO_AVX2]] int find_seeming_avx2(const SetSketch& own, float slope, const SetSketch* sketches,
                                     const float* slopes, std::int64_t n, std::int32_t* found) {
  return find_seeming(own, slope, sketches, slopes, n, found);
}

#endif

}  // namespace

int select_larger(const float* values, std::int64_t n, float threshold, std::int32_t* found) {
  AGGLO_DISPATCH(find_larger, (values, n, threshold, found));
}
int select_products(const float* partial, const float* rest, std::int64_t n, float own, float threshold,
                    std::int32_t* found) {
  AGGLO_DISPATCH(find_products, (partial, rest, n, own, threshold, found));
}
int select_overlaps(const float* partial, const float* rest, const float* sizes, std::int64_t n, float own,
                    float size, float slope, std::int32_t* found) {
  AGGLO_DISPATCH(find_overlaps, (partial, rest, sizes, n, own, size, slope, found));
}

void hamming_distances(const std::uint64_t* row, const std::uint64_t* rows, std::int64_t n,
                       std::int64_t width, std::int32_t* out) {
  AGGLO_DISPATCH(count_bits, (row, rows, n, width, out));
}

int select_overlapping(const SetSketch& own, float slope, const SetSketch* sketches, const float* slopes,
                       std::int64_t n, std::int32_t* found) {
  AGGLO_DISPATCH(find_seeming, (own, slope, sketches, slopes, n, found));
}

}  // namespace agglo
