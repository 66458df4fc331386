#include "kernels.hpp"

#include <algorithm>

#if defined(__x86_64__) && defined(__GNUC__)
#define AGGLO_AVX2 1
#include <immintrin.h>
#endif

namespace agglo {
namespace {

constexpr int kLanes = 8;  // running sums, so that they fit wide registers; part of the definition of a sum

struct Product {
  static double of(double x, double y) { return x * y; }
};
struct SquaredDifference {
  static double of(double x, double y) { return (x - y) * (x - y); }
};

template <class Term, class T>
[[gnu::always_inline]] inline double sum(const T* x, const T* y, std::int64_t n) {
  double lanes[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += Term::of(x[j + lane], y[j + lane]);
  for (int lane = 0; j < n; ++j, ++lane) lanes[lane] += Term::of(x[j], y[j]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class Term, class T>
double sum_anywhere(const T* x, const T* y, std::int64_t n) {
  return sum<Term>(x, y, n);
}

int survivors_anywhere(const float* products, const float* offsets, const float* reaches, float own_offset,
                       float own_reach, int begin, int end, std::int32_t* found) {
  int count = 0;
  for (int j = begin; j < end; ++j) {
    found[count] = j;
    count += products[j] >= std::min(own_reach + offsets[j], reaches[j] + own_offset);
  }
  return count;
}

#ifdef AGGLO_AVX2

// Without FMA, which would round differently from what other machines do.
template <class Term, class T>
[[gnu::target("avx2")]] double sum_avx2(const T* x, const T* y, std::int64_t n) {
  return sum<Term>(x, y, n);
}

[[gnu::target("avx2")]] int survivors_avx2(const float* products, const float* offsets, const float* reaches,
                                           float own_offset, float own_reach, int begin, int end,
                                           std::int32_t* found) {
  const __m256 offset = _mm256_set1_ps(own_offset), reach = _mm256_set1_ps(own_reach);
  const auto mask = [&](int j) __attribute__((target("avx2"))) {
    const __m256 own = _mm256_add_ps(reach, _mm256_loadu_ps(offsets + j));
    const __m256 other = _mm256_add_ps(offset, _mm256_loadu_ps(reaches + j));
    return _mm256_cmp_ps(_mm256_loadu_ps(products + j), _mm256_min_ps(own, other), _CMP_GE_OQ);
  };
  int count = 0, j = begin;
  for (; j + 32 <= end; j += 32) {
    const __m256 a = mask(j), b = mask(j + 8), c = mask(j + 16), d = mask(j + 24);
    const __m256 any = _mm256_or_ps(_mm256_or_ps(a, b), _mm256_or_ps(c, d));
    if (_mm256_testz_ps(any, any)) continue;  // by far the most
    std::uint32_t bits = static_cast<std::uint32_t>(_mm256_movemask_ps(a)) |
                         static_cast<std::uint32_t>(_mm256_movemask_ps(b)) << 8 |
                         static_cast<std::uint32_t>(_mm256_movemask_ps(c)) << 16 |
                         static_cast<std::uint32_t>(_mm256_movemask_ps(d)) << 24;
    for (; bits; bits &= bits - 1) found[count++] = j + __builtin_ctz(bits);
  }
  return count + survivors_anywhere(products, offsets, reaches, own_offset, own_reach, j, end, found + count);
}

const bool has_avx2 = __builtin_cpu_supports("avx2");

#endif

template <class Term, class T>
double fastest_sum(const T* x, const T* y, std::int64_t n) {
#ifdef AGGLO_AVX2
  if (has_avx2) return sum_avx2<Term>(x, y, n);
#endif
  return sum_anywhere<Term>(x, y, n);
}

}  // namespace

double dot(const float* x, const float* y, std::int64_t n) { return fastest_sum<Product>(x, y, n); }
double dot(const double* x, const double* y, std::int64_t n) { return fastest_sum<Product>(x, y, n); }
double squared_distance(const float* x, const float* y, std::int64_t n) {
  return fastest_sum<SquaredDifference>(x, y, n);
}
double squared_distance(const double* x, const double* y, std::int64_t n) {
  return fastest_sum<SquaredDifference>(x, y, n);
}

int survivors(const float* products, const float* offsets, const float* reaches, float own_offset,
              float own_reach, int begin, int end, std::int32_t* found) {
#ifdef AGGLO_AVX2
  if (has_avx2) return survivors_avx2(products, offsets, reaches, own_offset, own_reach, begin, end, found);
#endif
  return survivors_anywhere(products, offsets, reaches, own_offset, own_reach, begin, end, found);
}

}  // namespace agglo
