#include "simd/product.hpp"

#include <algorithm>

#include "simd/dispatch.hpp"

namespace agglo {
namespace {

// This file computes a matrix product in blocks. Each block of rows or columns is packed into panels of a few
// rows. For each term of the sum, a panel stores the numbers of its rows next to each other.
// The product of a panel of rows and a panel of columns is called a tile. Registers hold the sums of a tile.
// Long rows are divided into blocks of terms. Each block of terms adds to the sums of the previous block.

constexpr std::int64_t kTerms = 256;     // terms per block, so few that two panels fit into the L1 cache
constexpr std::int64_t kRows = 96;       // rows per block, a multiple of all tile heights
constexpr std::int64_t kColumns = 1024;  // columns per block, a multiple of all tile widths

// Defines a function that adds the product of two panels to a tile of sums.
// The rows of the tile are `stride` numbers apart.
// AGGLO_TILE is a macro, because a function that uses a vector type must be compiled for the instruction set
// of this type.
#define AGGLO_TILE(name, Vector, kHeight, kVectors)                                                          \
  void name(const float* rows, const float* columns, std::int64_t terms, float* sums, std::int64_t stride) { \
    constexpr int lanes = sizeof(Vector) / sizeof(float);                                                    \
    Vector sum[kHeight][kVectors];                                                                           \
    AGGLO_UNROLL for (int r = 0; r < kHeight; ++r) AGGLO_UNROLL for (int v = 0; v < kVectors; ++v)           \
        __builtin_memcpy(&sum[r][v], sums + r * stride + v * lanes, sizeof(Vector));                         \
    for (std::int64_t t = 0; t < terms; ++t, rows += kHeight, columns += kVectors * lanes) {                 \
      Vector column[kVectors];                                                                               \
      AGGLO_UNROLL for (int v = 0; v < kVectors; ++v)                                                        \
          __builtin_memcpy(&column[v], columns + v * lanes, sizeof(Vector));                                 \
      AGGLO_UNROLL for (int r = 0; r < kHeight; ++r) AGGLO_UNROLL for (int v = 0; v < kVectors; ++v)         \
          sum[r][v] += column[v] * rows[r];                                                                  \
    }                                                                                                        \
    AGGLO_UNROLL for (int r = 0; r < kHeight; ++r) AGGLO_UNROLL for (int v = 0; v < kVectors; ++v)           \
        __builtin_memcpy(sums + r * stride + v * lanes, &sum[r][v], sizeof(Vector));                         \
  }
#define AGGLO_UNROLL _Pragma("GCC unroll 16")

typedef float Float4 __attribute__((vector_size(16)));
AGGLO_TILE(tile_plain, Float4, 4, 2)
#ifdef AGGLO_X86
typedef float Float8 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));
[[AGGLO_AVX2]] AGGLO_TILE(tile_avx2, Float8, 6, 2) [[AGGLO_AVX512]] AGGLO_TILE(tile_avx512, Float16, 12, 2)
#endif

    struct Tile {
  int height, width;  // `height` is at most 12, and `width` is at most 32
  void (*add)(const float* rows, const float* columns, std::int64_t terms, float* sums, std::int64_t stride);
};

Tile tile() {
#ifdef AGGLO_X86
  if (simd_level() == Simd::avx512) return {12, 32, tile_avx512};
  if (simd_level() == Simd::avx2) return {6, 16, tile_avx2};
#endif
  return {4, 8, tile_plain};
}

// Packs the first `terms` numbers of each of n rows into panels of `width` rows.
// The rows are d numbers apart. If the last panel has fewer rows, zeros fill it.
void pack(const float* rows, std::int64_t n, std::int64_t d, std::int64_t terms, std::int64_t width,
          float* out) {
  for (std::int64_t first = 0; first < n; first += width, out += width * terms) {
    const std::int64_t here = std::min(width, n - first);
    for (std::int64_t r = 0; r < here; ++r) {
      const float* row = rows + (first + r) * d;
      for (std::int64_t t = 0; t < terms; ++t) out[t * width + r] = row[t];
    }
    for (std::int64_t r = here; r < width; ++r)
      for (std::int64_t t = 0; t < terms; ++t) out[t * width + r] = 0;
  }
}

}  // namespace

void multiply_rows(const float* rows, std::int64_t n_rows, const float* columns, std::int64_t n_columns,
                   std::int64_t d, std::vector<float>& products) {
  thread_local std::vector<float> packed_rows(kRows * kTerms), packed_columns(kColumns * kTerms);
  const Tile with = tile();
  if (products.size() < static_cast<std::size_t>(n_rows * n_columns)) products.resize(n_rows * n_columns);
  std::fill_n(products.begin(), n_rows * n_columns, 0.0f);
  float edge[12 * 32];  // a copy of a tile that is cut off by the last row or the last column
  for (std::int64_t left = 0; left < n_columns; left += kColumns)
    for (std::int64_t term = 0; term < d; term += kTerms) {
      const std::int64_t across = std::min(kColumns, n_columns - left), terms = std::min(kTerms, d - term);
      pack(columns + left * d + term, across, d, terms, with.width, packed_columns.data());
      for (std::int64_t top = 0; top < n_rows; top += kRows) {
        const std::int64_t down = std::min(kRows, n_rows - top);
        pack(rows + top * d + term, down, d, terms, with.height, packed_rows.data());
        for (std::int64_t c = 0; c < across; c += with.width)
          for (std::int64_t r = 0; r < down; r += with.height) {
            const float *row_panel = packed_rows.data() + r * terms,
                        *column_panel = packed_columns.data() + c * terms;
            float* sums = products.data() + (top + r) * n_columns + left + c;
            const std::int64_t height = std::min<std::int64_t>(with.height, down - r),
                               width = std::min<std::int64_t>(with.width, across - c);
            if (height == with.height && width == with.width) {
              with.add(row_panel, column_panel, terms, sums, n_columns);
              continue;
            }
            std::fill(std::begin(edge), std::end(edge), 0.0f);
            for (std::int64_t i = 0; i < height; ++i)
              std::copy_n(sums + i * n_columns, width, edge + i * with.width);
            with.add(row_panel, column_panel, terms, edge, with.width);
            for (std::int64_t i = 0; i < height; ++i)
              std::copy_n(edge + i * with.width, width, sums + i * n_columns);
          }
      }
    }
}

}  // namespace agglo
