// Rows of numbers in bytes, and their products, which are exact in integers: the same on every machine.
#pragma once

#include <cstdint>

namespace agglo {

constexpr std::int64_t kPanel = 16;  // columns that are multiplied at a time

// Numbers that a coded row of `width` takes: a multiple of four.
inline std::int64_t coded_width(std::int64_t width) { return (width + 3) / 4 * 4; }

// What is left of a row without a centre, as whole numbers in -127..127 times a scale.
struct Code {
  float scale;
  float lift;  // minus half the squared length of that; or, for products, the row's product with the centre
};

// Writes coded_width(width) numbers to `code`, those beyond the width being 0. `left` is for the rest itself.
Code encode(const float* row, const float* center, std::int64_t width, bool product, float* left,
            std::int8_t* code);

// Puts a code into column `column` of panels, where kPanel columns are interleaved by fours of numbers.
void put(const std::int8_t* code, std::int64_t coded, std::int64_t column, std::uint8_t* panels);

// products[i * stride + c] = row i . column c, for `panels` panels of columns.
void code_products(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                   const std::uint8_t* panels, std::int64_t n_panels, std::int32_t* products,
                   std::int64_t stride);

// The candidates of one row, while they are collected.
struct Sieve {
  float* scores;
  std::int32_t* slots;
  std::int64_t count, room;  // room for kPanel more than it is ever left with
};

// Adds slot first + c with score s = (products[c] * scales[c]) * scale - shifts[c] + lift for every column c
// in [begin, end) with s >= bar. Stops early when a sieve has no room for kPanel more, and returns where.
std::int64_t sift(const std::int32_t* products, const float* scales, const float* shifts, float scale,
                  float lift, float bar, std::int64_t begin, std::int64_t end, std::int32_t first,
                  Sieve& sieve);

}  // namespace agglo
