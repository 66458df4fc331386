#include "kernels.hpp"

#include <algorithm>
#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__)
#define AGGLO_AVX2 1
#include <immintrin.h>
#endif

namespace agglo {
namespace {

// Most kernels are written once, for any machine. Compiled a second time for AVX2 they give the same bits,
// for nothing in them may be fused or reordered (see CMakeLists.txt).

struct Product {
  template <class Number>
  static Number of(Number x, Number y) {
    return x * y;
  }
};

struct SquaredDifference {
  template <class Number>
  static Number of(Number x, Number y) {
    return (x - y) * (x - y);
  }
};

constexpr int kLanes = 8;  // running sums, so many that they fill wide registers; part of what a sum is

template <class Term, class Number, class T>
[[gnu::always_inline]] inline Number sum(const T* x, const T* y, std::int64_t n) {
  Number lane[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (int l = 0; l < kLanes; ++l)
      lane[l] += Term::template of<Number>(static_cast<Number>(x[j + l]), static_cast<Number>(y[j + l]));
  for (int l = 0; j < n; ++j, ++l)
    lane[l] += Term::template of<Number>(static_cast<Number>(x[j]), static_cast<Number>(y[j]));
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <class Term, class T>
[[gnu::always_inline]] inline float quick_sum(const T* x, const T* y, std::int64_t n) {
  return sum<Term, float>(x, y, n);
}

template <class Number, class T>
[[gnu::always_inline]] inline void shift(const T* x, const Wide<T>* center, Number factor, std::int64_t n,
                                         float* out) {
  for (std::int64_t j = 0; j < n; ++j)
    out[j] = static_cast<float>((static_cast<Wide<T>>(x[j]) - center[j]) * factor);
}

[[gnu::always_inline]] inline float bisect(std::int64_t k, const float* values, std::int64_t n) {
  float low = values[0], high = values[0];
  for (std::int64_t s = 1; s < n; ++s) {
    low = std::min(low, values[s]);
    high = std::max(high, values[s]);
  }
  for (;;) {  // at least k values reach low, all the time
    const float middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) return low;
    std::int32_t count = 0;
    for (std::int64_t s = 0; s < n; ++s) count += values[s] >= middle;
    if (count < k) {
      high = middle;
    } else {
      low = middle;
      if (count == k) return low;
    }
  }
}

[[gnu::always_inline]] inline int find(const float* products, const float* offsets, const float* reaches,
                                       float own_offset, float own_reach, int begin, int end,
                                       std::int32_t* found) {
  int count = 0;
  for (int j = begin; j < end; ++j) {
    found[count] = j;
    count += products[j] >= std::min(own_reach + offsets[j], reaches[j] + own_offset);
  }
  return count;
}

#ifdef AGGLO_AVX2

template <class Term, class Number, class T>
[[gnu::target("avx2")]] Number sum_avx2(const T* x, const T* y, std::int64_t n) {
  return sum<Term, Number>(x, y, n);
}

// Eight numbers as float32.
[[gnu::target("avx2")]] inline __m256 eight(const float* x) { return _mm256_loadu_ps(x); }
[[gnu::target("avx2,f16c")]] inline __m256 eight(const Half* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
[[gnu::target("avx2")]] inline __m256 eight(const std::int8_t* x) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))));
}
[[gnu::target("avx2")]] inline __m256 eight(const std::uint8_t* x) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))));
}

template <class Term, class T>
[[gnu::target("avx2,fma,f16c")]] float quick_sum_avx2(const T* x, const T* y, std::int64_t n) {
  __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  const auto add = [&](std::int64_t j, __m256& to) __attribute__((target("avx2,fma,f16c"))) {
    __m256 a = eight(x + j), b = eight(y + j);
    if constexpr (std::is_same_v<Term, SquaredDifference>) a = b = _mm256_sub_ps(a, b);
    to = _mm256_fmadd_ps(a, b, to);
  };
  std::int64_t j = 0;
  for (; j + 32 <= n; j += 32)
    for (int s = 0; s < 4; ++s) add(j + 8 * s, sums[s]);
  for (; j + 8 <= n; j += 8) add(j, sums[0]);
  const __m256 all = _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  float rest = _mm_cvtss_f32(four) + _mm_cvtss_f32(_mm_movehdup_ps(four));
  for (; j < n; ++j) rest += Term::template of<float>(static_cast<float>(x[j]), static_cast<float>(y[j]));
  return rest;
}

template <class Number, class T>
[[gnu::target("avx2")]] void shift_avx2(const T* x, const Wide<T>* center, Number factor, std::int64_t n,
                                        float* out) {
  shift(x, center, factor, n, out);
}

[[gnu::target("avx2")]] float bisect_avx2(std::int64_t k, const float* values, std::int64_t n) {
  return bisect(k, values, n);
}

[[gnu::target("avx2")]] int find_avx2(const float* products, const float* offsets, const float* reaches,
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
    const auto bits = [](__m256 set) __attribute__((target("avx2"))) {
      return static_cast<std::uint32_t>(_mm256_movemask_ps(set));
    };
    std::uint32_t set = bits(a) | bits(b) << 8 | bits(c) << 16 | bits(d) << 24;
    for (; set; set &= set - 1) found[count++] = j + __builtin_ctz(set);
  }
  return count + find(products, offsets, reaches, own_offset, own_reach, j, end, found + count);
}

const bool has_avx2 =
    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#define AGGLO_FASTEST(name, ...) return has_avx2 ? name##_avx2 __VA_ARGS__ : name __VA_ARGS__

#else
#define AGGLO_FASTEST(name, ...) return name __VA_ARGS__
#endif

template <class Term, class T>
double exact(const T* x, const T* y, std::int64_t n) {
  AGGLO_FASTEST(sum, <Term, double>(x, y, n));
}

template <class Term, class T>
float quick(const T* x, const T* y, std::int64_t n) {
  AGGLO_FASTEST(quick_sum, <Term>(x, y, n));
}

template <class Number, class T>
void shifted(const T* x, const Wide<T>* center, Number factor, std::int64_t n, float* out) {
  AGGLO_FASTEST(shift, (x, center, factor, n, out));
}

}  // namespace

template <class T>
double dot(const T* x, const T* y, std::int64_t n) {
  return exact<Product>(x, y, n);
}

template <class T>
double squared_distance(const T* x, const T* y, std::int64_t n) {
  return exact<SquaredDifference>(x, y, n);
}

template <class T>
float quick_dot(const T* x, const T* y, std::int64_t n) {
  return quick<Product>(x, y, n);
}

template <class T>
float quick_squared_distance(const T* x, const T* y, std::int64_t n) {
  return quick<SquaredDifference>(x, y, n);
}

template <class T>
void shifted_scaled(const T* x, const Wide<T>* center, double factor, std::int64_t n, float* out) {
  if (!std::is_same_v<T, double> && 1e-30 < factor && factor < 1e30)
    shifted(x, center, static_cast<float>(factor), n, out);
  else
    shifted(x, center, factor, n, out);
}

#define AGGLO_KERNELS(T)                                              \
  template double dot(const T*, const T*, std::int64_t);              \
  template double squared_distance(const T*, const T*, std::int64_t); \
  template void shifted_scaled(const T*, const Wide<T>*, double, std::int64_t, float*);
AGGLO_EACH_NUMBER(AGGLO_KERNELS)
#define AGGLO_QUICK_KERNELS(T)                                \
  template float quick_dot(const T*, const T*, std::int64_t); \
  template float quick_squared_distance(const T*, const T*, std::int64_t);
AGGLO_QUICK_KERNELS(float)
AGGLO_QUICK_KERNELS(Half)
AGGLO_QUICK_KERNELS(std::int8_t)
AGGLO_QUICK_KERNELS(std::uint8_t)

float reached_by(std::int64_t k, const float* values, std::int64_t n) {
  AGGLO_FASTEST(bisect, (k, values, n));
}

int survivors(const float* products, const float* offsets, const float* reaches, float own_offset,
              float own_reach, int begin, int end, std::int32_t* found) {
  AGGLO_FASTEST(find, (products, offsets, reaches, own_offset, own_reach, begin, end, found));
}

}  // namespace agglo
