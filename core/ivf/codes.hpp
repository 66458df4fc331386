// int8 codes of residuals, and products of codes, which are exact in integers and the same on every machine.
#pragma once

#include <cstdint>

namespace agglo {

constexpr std::int64_t kPanel = 16;  // codes that are multiplied at a time

// Return the number of bytes of a code of `width` numbers: a multiple of four.
inline std::int64_t code_width(std::int64_t width) { return (width + 3) / 4 * 4; }

// The parameters of a code. A residual, a row minus the centroid of its list, is coded as whole numbers in
// -127..127 times a scale.
struct Code {
  float scale;
  float bias;  // minus half the squared length of the residual; for products, the row's product with the
               // centroid
};

// Code a row and return the parameters. Writes code_width(width) numbers to `code`, padded with 0, and
// `width` numbers to `residual`.
Code encode(const float* row, const float* centroid, std::int64_t width, bool product, float* residual,
            std::int8_t* code);

// Store a code as column `column` of panels. A panel interleaves kPanel columns, four numbers of each in
// turn.
void store_code(const std::int8_t* code, std::int64_t coded, std::int64_t column, std::uint8_t* panels);

// Set products[i * stride + c] = row i . column c, for all columns of n_panels panels.
void code_products(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                   const std::uint8_t* panels, std::int64_t n_panels, std::int32_t* products,
                   std::int64_t stride);

// The candidates of one row while its lists are scanned. A slot is a column of all panels.
struct Reservoir {
  float* scores;
  std::int32_t* slots;
  std::int64_t count, capacity;  // room for at least kPanel more than are kept after a pruning
};

// Add every column c in [begin, end) whose score reaches the threshold to a reservoir, as slot first + c. The
// score is (products[c] * scales[c]) * scale - biases[c] + bias.
//
// Stops early if the reservoir has no room for kPanel more candidates. Returns the next column to look at.
std::int64_t select_codes(const std::int32_t* products, const float* scales, const float* biases, float scale,
                          float bias, float threshold, std::int64_t begin, std::int64_t end,
                          std::int32_t first, Reservoir& reservoir);

}  // namespace agglo
