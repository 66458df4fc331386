#include "simd/dot.hpp"

#include <algorithm>
#include <type_traits>

#include "simd/dispatch.hpp"

#ifdef AGGLO_X86
#include <immintrin.h>
#endif

namespace agglo {
namespace {

// Most kernels are compiled twice: once without AVX2 instructions, and once with them.
// CMakeLists.txt forbids the compiler to fuse or reorder operations.
// So both versions of a kernel give the same bits.

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

// The number of partial sums, which fill a wide register. This number determines how a sum is rounded.
constexpr int kLanes = 8;

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

// float32 kernels use 32 partial sums. If fewer than 32 terms remain, only the first eight sums grow.
constexpr int kQuickLanes = 32;

// Returns the sum of eight partial sums and of the terms with index j and above, in a fixed order.
template <class Term, class T>
[[gnu::always_inline]] inline float finish_quick_sum(const float* lane, const T* x, const T* y,
                                                     std::int64_t j, std::int64_t n) {
  float rest = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  for (; j < n; ++j) rest += Term::template of<float>(static_cast<float>(x[j]), static_cast<float>(y[j]));
  return rest;
}

template <class Term, class T>
float quick_sum(const T* x, const T* y, std::int64_t n) {
  float lane[kQuickLanes] = {};
  const auto add = [&](std::int64_t j, float& to) __attribute__((always_inline)) {
    to += Term::template of<float>(static_cast<float>(x[j]), static_cast<float>(y[j]));
  };
  std::int64_t j = 0;
  for (; j + kQuickLanes <= n; j += kQuickLanes)
    for (int l = 0; l < kQuickLanes; ++l) add(j + l, lane[l]);
  for (; j + kLanes <= n; j += kLanes)
    for (int l = 0; l < kLanes; ++l) add(j + l, lane[l]);
  for (int l = 0; l < kLanes; ++l)
    lane[l] = (lane[l] + lane[l + kLanes]) + (lane[l + 2 * kLanes] + lane[l + 3 * kLanes]);
  return finish_quick_sum<Term>(lane, x, y, j, n);
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
  for (;;) {  // invariant: at least k values reach `low`
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

[[gnu::always_inline]] inline int find(const float* products, const float* offsets, const float* cutoffs,
                                       float own_offset, float own_cutoff, int begin, int end,
                                       std::int32_t* found) {
  int count = 0;
  for (int j = begin; j < end; ++j) {
    found[count] = j;
    count += products[j] >= std::min(own_cutoff + offsets[j], cutoffs[j] + own_offset);
  }
  return count;
}

#ifdef AGGLO_X86

template <class Term, class Number, class T>
[[AGGLO_AVX2]] Number sum_avx2(const T* x, const T* y, std::int64_t n) {
  return sum<Term, Number>(x, y, n);
}

// Load eight numbers and convert them to float32.
[[AGGLO_AVX2]] inline __m256 load_avx2(const float* x) { return _mm256_loadu_ps(x); }
[[AGGLO_AVX2]] inline __m256 load_avx2(const Half* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
[[AGGLO_AVX2]] inline __m256 load_avx2(const std::int8_t* x) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))));
}
[[AGGLO_AVX2]] inline __m256 load_avx2(const std::uint8_t* x) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))));
}

// This kernel uses intrinsics, because compilers do not convert eight bytes to float32 at once.
// The kernel uses no fused multiply-add operations, because they would be slow in the plain version.
template <class Term, class T>
[[AGGLO_AVX2]] float quick_sum_avx2(const T* x, const T* y, std::int64_t n) {
  __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  const auto add = [&](std::int64_t j, __m256& to) __attribute__((target("avx2,fma,f16c,popcnt"))) {
    __m256 a = load_avx2(x + j), b = load_avx2(y + j);
    if constexpr (std::is_same_v<Term, SquaredDifference>) a = b = _mm256_sub_ps(a, b);
    to = _mm256_add_ps(to, _mm256_mul_ps(a, b));
  };
  std::int64_t j = 0;
  for (; j + kQuickLanes <= n; j += kQuickLanes)
    for (int s = 0; s < 4; ++s) add(j + kLanes * s, sums[s]);
  for (; j + kLanes <= n; j += kLanes) add(j, sums[0]);
  float lane[kLanes];
  _mm256_storeu_ps(lane, _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
  return finish_quick_sum<Term>(lane, x, y, j, n);
}

template <class Number, class T>
[[AGGLO_AVX2]] void shift_avx2(const T* x, const Wide<T>* center, Number factor, std::int64_t n, float* out) {
  shift(x, center, factor, n, out);
}

[[AGGLO_AVX2]] float bisect_avx2(std::int64_t k, const float* values, std::int64_t n) {
  return bisect(k, values, n);
}

[[AGGLO_AVX2]] int find_avx2(const float* products, const float* offsets, const float* cutoffs,
                             float own_offset, float own_cutoff, int begin, int end, std::int32_t* found) {
  const __m256 offset = _mm256_set1_ps(own_offset), reach = _mm256_set1_ps(own_cutoff);
  const auto mask = [&](int j) __attribute__((target("avx2,fma,f16c,popcnt"))) {
    const __m256 own = _mm256_add_ps(reach, _mm256_loadu_ps(offsets + j));
    const __m256 other = _mm256_add_ps(offset, _mm256_loadu_ps(cutoffs + j));
    return _mm256_cmp_ps(_mm256_loadu_ps(products + j), _mm256_min_ps(own, other), _CMP_GE_OQ);
  };
  int count = 0, j = begin;
  for (; j + 32 <= end; j += 32) {
    const __m256 a = mask(j), b = mask(j + 8), c = mask(j + 16), d = mask(j + 24);
    const __m256 any = _mm256_or_ps(_mm256_or_ps(a, b), _mm256_or_ps(c, d));
    if (_mm256_testz_ps(any, any)) continue;  // this is true for nearly all blocks of 32 products
    const auto bits = [](__m256 set) __attribute__((target("avx2,fma,f16c,popcnt"))) {
      return static_cast<std::uint32_t>(_mm256_movemask_ps(set));
    };
    std::uint32_t set = bits(a) | bits(b) << 8 | bits(c) << 16 | bits(d) << 24;
    for (; set; set &= set - 1) found[count++] = j + __builtin_ctz(set);
  }
  return count + find(products, offsets, cutoffs, own_offset, own_cutoff, j, end, found + count);
}

#endif

template <class Term, class T>
double exact(const void* x, const void* y, std::int64_t n) {
  AGGLO_DISPATCH(sum, <Term, double>(static_cast<const T*>(x), static_cast<const T*>(y), n));
}

template <class Term, class T>
float quick(const void* x, const void* y, std::int64_t n) {
  AGGLO_DISPATCH(quick_sum, <Term>(static_cast<const T*>(x), static_cast<const T*>(y), n));
}

template <class Number, class T>
void shifted(const T* x, const Wide<T>* center, Number factor, std::int64_t n, float* out) {
  AGGLO_DISPATCH(shift, (x, center, factor, n, out));
}

template <class T>
void shift_to_float(const void* row, [[maybe_unused]] const float* center32,
                    [[maybe_unused]] const double* center, double factor, std::int64_t n, float* out) {
  const T* x = static_cast<const T*>(row);
  if constexpr (std::is_same_v<T, double>)
    shifted(x, center, factor, n, out);
  else if (1e-30 < factor && factor < 1e30)
    shifted(x, center32, static_cast<float>(factor), n, out);
  else
    shifted(x, center32, factor, n, out);
}

template <class T>
void shift_to_double(const void* row, const double* center, double factor, std::int64_t n, double* out) {
  const T* x = static_cast<const T*>(row);
  for (std::int64_t j = 0; j < n; ++j) out[j] = (static_cast<double>(x[j]) - center[j]) * factor;
}

template <class T>
RowKernels kernels() {
  RowKernels result{exact<Product, T>, exact<SquaredDifference, T>, nullptr,
                    nullptr,           shift_to_float<T>,           shift_to_double<T>};
  if constexpr (!std::is_same_v<T, double>) {
    result.quick_dot = quick<Product, T>;
    result.quick_squared_distance = quick<SquaredDifference, T>;
  }
  return result;
}

}  // namespace

template <class T>
double dot(const T* x, const T* y, std::int64_t n) {
  return exact<Product, T>(x, y, n);
}
template <class T>
double squared_distance(const T* x, const T* y, std::int64_t n) {
  return exact<SquaredDifference, T>(x, y, n);
}
template double dot(const float*, const float*, std::int64_t);
template double dot(const double*, const double*, std::int64_t);
template double squared_distance(const float*, const float*, std::int64_t);
template double squared_distance(const double*, const double*, std::int64_t);

float quick_dot(const float* x, const float* y, std::int64_t n) { return quick<Product, float>(x, y, n); }
float quick_squared_distance(const float* x, const float* y, std::int64_t n) {
  return quick<SquaredDifference, float>(x, y, n);
}

RowKernels row_kernels(NumberType type) {
  return with_number_type(type, []<class T>() { return kernels<T>(); });
}

float top_k_threshold(std::int64_t k, const float* values, std::int64_t n) {
  AGGLO_DISPATCH(bisect, (k, values, n));
}

int select_above(const float* products, const float* offsets, const float* cutoffs, float own_offset,
                 float own_cutoff, int begin, int end, std::int32_t* found) {
  AGGLO_DISPATCH(find, (products, offsets, cutoffs, own_offset, own_cutoff, begin, end, found));
}

}  // namespace agglo
