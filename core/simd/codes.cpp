#include "simd/codes.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simd/dispatch.hpp"

#ifdef AGGLO_X86
#include <immintrin.h>
#endif

namespace agglo {
namespace {

constexpr int kLanes = 16;      // the number of partial sums; this number determines how a sum is rounded
constexpr float kTiny = 1e-30;  // smaller residuals are treated as 0, because their inverse could overflow
// In a panel, the first four numbers of all codes come first, then the next four, and so on.
// The size of one such group of numbers in bytes:
constexpr std::int64_t kBytes = 4 * kPanel;

[[gnu::always_inline]] inline Code encode_plain(const float* row, const float* centroid, std::int64_t width,
                                                bool product, float* residual, std::int8_t* code,
                                                const CodeFormat& format) {
  float most[kLanes] = {}, total[kLanes] = {};
  const auto add = [&](std::int64_t j, int l) {
    const float difference = row[j] - centroid[j];
    const float size = difference < 0 ? -difference : difference;
    residual[j] = difference;
    most[l] = size > most[l] ? size : most[l];
    total[l] += product ? row[j] * centroid[j] : difference * difference;
  };
  std::int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes)
    for (int l = 0; l < kLanes; ++l) add(j + l, l);
  for (int l = 0; j < width; ++j, ++l) add(j, l);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) {
      most[l] = std::max(most[l], most[l + half]);
      total[l] += total[l + half];
    }
  const float largest = most[0] > kTiny ? most[0] : 0,
              inverse = largest > 0 ? static_cast<float>(format.limit) / largest : 0;
  for (j = 0; j < width; ++j) {
    const float number = residual[j] * inverse;
    code[j] = static_cast<std::int8_t>(static_cast<std::int32_t>(number + (number < 0 ? -0.5f : 0.5f)));
  }
  for (; j < code_width(width); ++j) code[j] = 0;
  return {largest / static_cast<float>(format.limit), product ? total[0] : total[0] / -2};
}

void multiply_plain(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                    const std::uint8_t* panels, std::int64_t n_panels, int shift, std::int32_t* products,
                    std::int64_t stride) {
  for (std::int64_t i = 0; i < n_rows; ++i)
    for (std::int64_t panel = 0; panel < n_panels; ++panel) {
      const std::uint8_t* four = panels + panel * coded * kPanel;
      std::int32_t sums[kPanel] = {};
      for (std::int64_t j = 0; j < coded; j += 4, four += kBytes)
        for (std::int64_t c = 0; c < kPanel; ++c)
          for (int l = 0; l < 4; ++l) sums[c] += (four[4 * c + l] - shift) * rows[i * coded + j + l];
      std::copy_n(sums, kPanel, products + i * stride + panel * kPanel);
    }
}

std::int64_t select_codes_plain(const std::int32_t* products, const float* scales, const float* biases,
                                float scale, float bias, float threshold, std::int64_t begin,
                                std::int64_t end, std::int32_t first, Reservoir& reservoir) {
  for (std::int64_t c = begin; c < end; ++c) {
    if ((c - begin) % kPanel == 0 && reservoir.count + kPanel > reservoir.capacity) return c;
    const float score = static_cast<float>(products[c]) * scales[c] * scale - biases[c] + bias;
    if (!(score >= threshold)) continue;
    reservoir.scores[reservoir.count] = score;
    reservoir.slots[reservoir.count++] = first + static_cast<std::int32_t>(c);
  }
  return end;
}

// Few rows pass the test. So the loop first tests whether any of 16 rows passes.
[[gnu::always_inline]] inline int select_bounds_plain(const std::int32_t* products, const float* scales,
                                                      const float* biases, const float* thresholds,
                                                      float scale, float bias, float threshold, int begin,
                                                      int end, std::int32_t* found) {
  const auto test = [=](int j) __attribute__((always_inline)) {
    const float bound = static_cast<float>(products[j]) * scales[j] * scale + biases[j] + bias;
    return static_cast<int>(bound >= std::min(threshold, thresholds[j]));
  };
  int count = 0, j = begin;
  const auto one_by_one = [&](int last) __attribute__((always_inline)) {
    for (; j < last; ++j) {
      found[count] = j;
      count += test(j);
    }
  };
  one_by_one(std::min(end, (begin + kLanes - 1) / kLanes * kLanes));
  for (; j + kLanes <= end;) {
    int any = 0;
    for (int l = 0; l < kLanes; ++l) any |= test(j + l);
    if (any)
      one_by_one(j + kLanes);
    else
      j += kLanes;
  }
  one_by_one(end);
  return count;
}

#ifdef AGGLO_X86

[[AGGLO_AVX2]] int select_bounds_plain_avx2(const std::int32_t* products, const float* scales,
                                            const float* biases, const float* thresholds, float scale,
                                            float bias, float threshold, int begin, int end,
                                            std::int32_t* found) {
  return select_bounds_plain(products, scales, biases, thresholds, scale, bias, threshold, begin, end, found);
}

[[AGGLO_AVX512]] int select_bounds_avx512(const std::int32_t* products, const float* scales,
                                          const float* biases, const float* thresholds, float scale,
                                          float bias, float threshold, int begin, int end,
                                          std::int32_t* found) {
  const __m512 scale16 = _mm512_set1_ps(scale), bias16 = _mm512_set1_ps(bias),
               threshold16 = _mm512_set1_ps(threshold);
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int count = 0;
  for (int c = begin; c < end; c += kPanel) {
    const auto there = static_cast<__mmask16>(end - c >= kPanel ? 0xffff : (1u << (end - c)) - 1);
    const __m512 product = _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(there, products + c));
    const __m512 scaled =
        _mm512_mul_ps(_mm512_mul_ps(product, _mm512_maskz_loadu_ps(there, scales + c)), scale16);
    const __m512 bound =
        _mm512_add_ps(_mm512_add_ps(scaled, _mm512_maskz_loadu_ps(there, biases + c)), bias16);
    const __m512 lower = _mm512_min_ps(threshold16, _mm512_maskz_loadu_ps(there, thresholds + c));
    const __mmask16 passed = _mm512_mask_cmp_ps_mask(there, bound, lower, _CMP_GE_OQ);
    if (passed == 0) continue;
    _mm512_mask_compressstoreu_epi32(found + count, passed, _mm512_add_epi32(order, _mm512_set1_epi32(c)));
    count += __builtin_popcount(passed);
  }
  return count;
}

// Returns by how much the products of a row are too large, because panels store each number plus `shift`.
std::int32_t correction(const std::int8_t* row, std::int64_t coded, int shift) {
  std::int32_t sum = 0;
  for (std::int64_t j = 0; j < coded; ++j) sum += row[j];
  return shift * sum;
}

std::int32_t four_of(const std::int8_t* row) {
  std::int32_t four;
  std::memcpy(&four, row, sizeof four);
  return four;
}

template <int kRows, int kPanels>
[[AGGLO_AVX512]] inline void tile_avx512(const std::int8_t* rows, std::int64_t coded,
                                         const std::uint8_t* panels, const std::int32_t* excess,
                                         std::int32_t* products, std::int64_t stride) {
  __m512i sums[kRows][kPanels];
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kPanels; ++p) sums[i][p] = _mm512_set1_epi32(-excess[i]);
  for (std::int64_t j = 0; j < coded; j += 4) {
    __m512i columns[kPanels];
    for (int p = 0; p < kPanels; ++p) columns[p] = _mm512_loadu_si512(panels + (p * coded + j) * kPanel);
    for (int i = 0; i < kRows; ++i) {
      const __m512i four = _mm512_set1_epi32(four_of(rows + i * coded + j));
      for (int p = 0; p < kPanels; ++p) sums[i][p] = _mm512_dpbusd_epi32(sums[i][p], columns[p], four);
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_si512(products + i * stride + p * kPanel, sums[i][p]);
}

template <int kRows>
[[AGGLO_AVX512]] void rows_avx512(const std::int8_t* rows, std::int64_t coded, const std::uint8_t* panels,
                                  std::int64_t n_panels, const std::int32_t* excess, std::int32_t* products,
                                  std::int64_t stride) {
  std::int64_t p = 0;
  for (; p + 2 <= n_panels; p += 2)
    tile_avx512<kRows, 2>(rows, coded, panels + p * coded * kPanel, excess, products + p * kPanel, stride);
  if (p < n_panels)
    tile_avx512<kRows, 1>(rows, coded, panels + p * coded * kPanel, excess, products + p * kPanel, stride);
}

void multiply_avx512(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                     const std::uint8_t* panels, std::int64_t n_panels, int shift, std::int32_t* products,
                     std::int64_t stride) {
  constexpr std::int64_t most = 8;
  std::int32_t excess[most];
  for (std::int64_t i = 0; i < n_rows;) {
    const std::int64_t left = n_rows - i, now = left >= most ? most : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    for (std::int64_t r = 0; r < now; ++r) excess[r] = correction(rows + (i + r) * coded, coded, shift);
    const auto tile = now == most ? rows_avx512<8>
                      : now == 4  ? rows_avx512<4>
                      : now == 2  ? rows_avx512<2>
                                  : rows_avx512<1>;
    tile(rows + i * coded, coded, panels, n_panels, excess, products + i * stride, stride);
    i += now;
  }
}

[[AGGLO_AVX512]] std::int64_t select_codes_avx512(const std::int32_t* products, const float* scales,
                                                  const float* biases, float scale, float bias,
                                                  float threshold, std::int64_t begin, std::int64_t end,
                                                  std::int32_t first, Reservoir& reservoir) {
  const __m512 scale16 = _mm512_set1_ps(scale), bias16 = _mm512_set1_ps(bias),
               threshold16 = _mm512_set1_ps(threshold);
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (std::int64_t c = begin; c < end; c += kPanel) {
    if (reservoir.count + kPanel > reservoir.capacity) return c;
    const auto there = static_cast<__mmask16>(end - c >= kPanel ? 0xffff : (1u << (end - c)) - 1);
    const __m512 product = _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(there, products + c));
    const __m512 scaled =
        _mm512_mul_ps(_mm512_mul_ps(product, _mm512_maskz_loadu_ps(there, scales + c)), scale16);
    const __m512 score =
        _mm512_add_ps(_mm512_sub_ps(scaled, _mm512_maskz_loadu_ps(there, biases + c)), bias16);
    const __mmask16 passed = _mm512_mask_cmp_ps_mask(there, score, threshold16, _CMP_GE_OQ);
    if (passed == 0) continue;
    const __m512i slots = _mm512_add_epi32(order, _mm512_set1_epi32(first + static_cast<std::int32_t>(c)));
    _mm512_storeu_ps(reservoir.scores + reservoir.count, _mm512_maskz_compress_ps(passed, score));
    _mm512_storeu_si512(reservoir.slots + reservoir.count, _mm512_maskz_compress_epi32(passed, slots));
    reservoir.count += __builtin_popcount(passed);
  }
  return end;
}

[[AGGLO_AVX512]] Code encode_avx512(const float* row, const float* centroid, std::int64_t width, bool product,
                                    float* residual, std::int8_t* code, const CodeFormat& format) {
  return encode_plain(row, centroid, width, product, residual, code, format);
}

[[AGGLO_AVX2]] Code encode_avx2(const float* row, const float* centroid, std::int64_t width, bool product,
                                float* residual, std::int8_t* code, const CodeFormat& format) {
  return encode_plain(row, centroid, width, product, residual, code, format);
}

// Each step reads four numbers of each of four columns of a panel, and converts them to 16 bits.
// The step multiplies these numbers by four numbers of the row, and adds pairs of products.
[[AGGLO_AVX2]] void multiply_avx2(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                                  const std::uint8_t* panels, std::int64_t n_panels, int shift,
                                  std::int32_t* products, std::int64_t stride) {
  constexpr std::int64_t most = 2;
  for (std::int64_t i = 0; i < n_rows; i += most) {
    const std::int64_t now = std::min(most, n_rows - i);
    const std::int8_t* row[most] = {rows + i * coded, rows + (i + now - 1) * coded};
    const std::int32_t excess[most] = {correction(row[0], coded, shift), correction(row[1], coded, shift)};
    for (std::int64_t panel = 0; panel < n_panels; ++panel) {
      const std::uint8_t* four = panels + panel * coded * kPanel;
      __m256i sums[most][4];
      for (auto& of_row : sums)
        for (__m256i& sum : of_row) sum = _mm256_setzero_si256();
      for (std::int64_t j = 0; j < coded; j += 4, four += kBytes) {
        __m256i numbers[most];
        for (int r = 0; r < most; ++r)
          numbers[r] = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(four_of(row[r] + j))));
        for (int q = 0; q < 4; ++q) {
          const __m256i columns =
              _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(four + q * kBytes / 4)));
          for (int r = 0; r < most; ++r)
            sums[r][q] = _mm256_add_epi32(sums[r][q], _mm256_madd_epi16(columns, numbers[r]));
        }
      }
      for (std::int64_t r = 0; r < now; ++r)
        for (int q = 0; q < 4; q += 2) {
          const __m256i pairs = _mm256_hadd_epi32(sums[r][q], sums[r][q + 1]);
          const __m256i eight =
              _mm256_sub_epi32(_mm256_permute4x64_epi64(pairs, 0xd8), _mm256_set1_epi32(excess[r]));
          _mm256_storeu_si256(
              reinterpret_cast<__m256i*>(products + (i + r) * stride + panel * kPanel + q * 4), eight);
        }
    }
  }
}

// Computes the products of four rows with eight columns of a panel.
// The accumulators are variables, because g++ would keep the elements of an array in memory.
[[AGGLO_AVX2]] inline void short_tile_avx2(const std::int8_t* const (&rows)[4], std::int64_t coded,
                                           const std::uint8_t* columns, const std::int32_t (&excess)[4],
                                           std::int32_t* const (&products)[4]) {
  const auto* from = reinterpret_cast<const __m256i*>(columns);
  // In a panel, the first four numbers of all columns come first, then the next four, and so on.
  // The step from one such group of numbers to the next, in registers:
  constexpr std::int64_t step = kBytes / sizeof(__m256i);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i a = _mm256_set1_epi32(-excess[0]), b = _mm256_set1_epi32(-excess[1]),
          c = _mm256_set1_epi32(-excess[2]), d = _mm256_set1_epi32(-excess[3]);
  const auto four = [&](int row, std::int64_t j) { return four_of(rows[row] + j); };
  std::int64_t j = 0;
  for (; j + 8 <= coded; j += 8, from += 2 * step) {
    const __m256i x = _mm256_loadu_si256(from), y = _mm256_loadu_si256(from + step);
    __m256i sum = _mm256_add_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(0, j))),
                                   _mm256_maddubs_epi16(y, _mm256_set1_epi32(four(0, j + 4))));
    a = _mm256_add_epi32(a, _mm256_madd_epi16(sum, ones));
    sum = _mm256_add_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(1, j))),
                           _mm256_maddubs_epi16(y, _mm256_set1_epi32(four(1, j + 4))));
    b = _mm256_add_epi32(b, _mm256_madd_epi16(sum, ones));
    sum = _mm256_add_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(2, j))),
                           _mm256_maddubs_epi16(y, _mm256_set1_epi32(four(2, j + 4))));
    c = _mm256_add_epi32(c, _mm256_madd_epi16(sum, ones));
    sum = _mm256_add_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(3, j))),
                           _mm256_maddubs_epi16(y, _mm256_set1_epi32(four(3, j + 4))));
    d = _mm256_add_epi32(d, _mm256_madd_epi16(sum, ones));
  }
  if (j < coded) {
    const __m256i x = _mm256_loadu_si256(from);
    a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(0, j))), ones));
    b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(1, j))), ones));
    c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(2, j))), ones));
    d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_set1_epi32(four(3, j))), ones));
  }
  // If fewer than four rows remain, the last entries of `rows` and `products` repeat the last row.
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(products[3]), d);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(products[2]), c);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(products[1]), b);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(products[0]), a);
}

// Multiplies short codes. The sum of four products of short codes fits into 16 bits.
[[AGGLO_AVX2]] void multiply_short_avx2(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                                        const std::uint8_t* panels, std::int64_t n_panels, int shift,
                                        std::int32_t* products, std::int64_t stride) {
  for (std::int64_t i = 0; i < n_rows; i += 4) {
    const std::int8_t* four[4];
    std::int32_t excess[4], *out[4];
    for (std::int64_t r = 0; r < 4; ++r) {
      const std::int64_t row = std::min(i + r, n_rows - 1);
      four[r] = rows + row * coded;
      excess[r] = correction(four[r], coded, shift);
      out[r] = products + row * stride;
    }
    for (std::int64_t half = 0; half < 2 * n_panels; ++half) {
      short_tile_avx2(four, coded, panels + half / 2 * coded * kPanel + half % 2 * (kBytes / 2), excess, out);
      for (auto& row : out) row += kPanel / 2;
    }
  }
}

[[AGGLO_AVX2]] std::int64_t select_codes_avx2(const std::int32_t* products, const float* scales,
                                              const float* biases, float scale, float bias, float threshold,
                                              std::int64_t begin, std::int64_t end, std::int32_t first,
                                              Reservoir& reservoir) {
  const __m256 scale8 = _mm256_set1_ps(scale), bias8 = _mm256_set1_ps(bias),
               threshold8 = _mm256_set1_ps(threshold);
  std::int64_t c = begin;
  for (; c + 8 <= end; c += 8) {
    if ((c - begin) % kPanel == 0 && reservoir.count + kPanel > reservoir.capacity) return c;
    const __m256 product =
        _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(products + c)));
    const __m256 scaled = _mm256_mul_ps(_mm256_mul_ps(product, _mm256_loadu_ps(scales + c)), scale8);
    const __m256 score = _mm256_add_ps(_mm256_sub_ps(scaled, _mm256_loadu_ps(biases + c)), bias8);
    auto passed = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(score, threshold8, _CMP_GE_OQ)));
    if (passed == 0) continue;
    float scores[8];
    _mm256_storeu_ps(scores, score);
    for (; passed; passed &= passed - 1) {
      const int at = __builtin_ctz(passed);
      reservoir.scores[reservoir.count] = scores[at];
      reservoir.slots[reservoir.count++] = first + static_cast<std::int32_t>(c) + at;
    }
  }
  // If a panel is half tested, its candidates fit: there was room for kPanel candidates before the panel.
  if (c == end || ((c - begin) % kPanel == 0 && reservoir.count + kPanel > reservoir.capacity)) return c;
  return select_codes_plain(products, scales, biases, scale, bias, threshold, c, end, first, reservoir);
}

#endif

}  // namespace

Code encode(const float* row, const float* centroid, std::int64_t width, bool product, float* residual,
            std::int8_t* code, const CodeFormat& format) {
#ifdef AGGLO_X86
  if (simd_level() == Simd::avx512)
    return encode_avx512(row, centroid, width, product, residual, code, format);
  if (simd_level() == Simd::avx2) return encode_avx2(row, centroid, width, product, residual, code, format);
#endif
  return encode_plain(row, centroid, width, product, residual, code, format);
}

void store_code(const std::int8_t* code, std::int64_t coded, std::int64_t column, std::uint8_t* panels,
                const CodeFormat& format) {
  std::uint8_t* to = panels + column / kPanel * kPanel * coded + column % kPanel * 4;
  for (std::int64_t j = 0; j < coded; j += 4, to += kBytes)
    for (int l = 0; l < 4; ++l) to[l] = static_cast<std::uint8_t>(code[j + l] + format.shift);
}

void load_code(const std::uint8_t* panels, std::int64_t coded, std::int64_t column, std::int8_t* code,
               const CodeFormat& format) {
  const std::uint8_t* from = panels + column / kPanel * kPanel * coded + column % kPanel * 4;
  for (std::int64_t j = 0; j < coded; j += 4, from += kBytes)
    for (int l = 0; l < 4; ++l) code[j + l] = static_cast<std::int8_t>(from[l] - format.shift);
}

int select_bounds(const std::int32_t* products, const float* scales, const float* biases,
                  const float* thresholds, float scale, float bias, float threshold, int begin, int end,
                  std::int32_t* found) {
#ifdef AGGLO_X86
  if (simd_level() == Simd::avx512)
    return select_bounds_avx512(products, scales, biases, thresholds, scale, bias, threshold, begin, end,
                                found);
#endif
  AGGLO_DISPATCH(select_bounds_plain,
                 (products, scales, biases, thresholds, scale, bias, threshold, begin, end, found));
}

void code_products(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                   const std::uint8_t* panels, std::int64_t n_panels, std::int32_t* products,
                   std::int64_t stride, const CodeFormat& format) {
#ifdef AGGLO_X86
  if (simd_level() == Simd::avx512)
    return multiply_avx512(rows, n_rows, coded, panels, n_panels, format.shift, products, stride);
  if (simd_level() == Simd::avx2)
    return (format.limit <= kShortCodes.limit ? multiply_short_avx2 : multiply_avx2)(
        rows, n_rows, coded, panels, n_panels, format.shift, products, stride);
#endif
  multiply_plain(rows, n_rows, coded, panels, n_panels, format.shift, products, stride);
}

std::int64_t select_codes(const std::int32_t* products, const float* scales, const float* biases, float scale,
                          float bias, float threshold, std::int64_t begin, std::int64_t end,
                          std::int32_t first, Reservoir& reservoir) {
#ifdef AGGLO_X86
  if (simd_level() == Simd::avx512)
    return select_codes_avx512(products, scales, biases, scale, bias, threshold, begin, end, first,
                               reservoir);
  if (simd_level() == Simd::avx2)
    return select_codes_avx2(products, scales, biases, scale, bias, threshold, begin, end, first, reservoir);
#endif
  return select_codes_plain(products, scales, biases, scale, bias, threshold, begin, end, first, reservoir);
}

}  // namespace agglo
