// int8 codes of residuals, and dot products of codes.
// Products are exact integers, so they are the same on every machine.
#pragma once

#include <cstdint>

namespace agglo {

constexpr std::int64_t kPanel = 16;  // codes per panel, which are multiplied together

// Return the number of bytes in a code of `width` numbers, rounded up to a multiple of four.
inline std::int64_t code_width(std::int64_t width) { return (width + 3) / 4 * 4; }

// How codes are stored. Columns are stored as unsigned bytes, number + shift.
// Long codes need VNNI for fast products. Four products of short codes fit into 16 bits, so AVX2 is enough.
struct CodeFormat {
  int limit;  // the largest number of a code
  int shift;
};
constexpr CodeFormat kLongCodes{127, 128}, kShortCodes{63, 64};

// The parameters of an int8 code. The residual is a row minus the centroid of its inverted list.
// The code approximates the residual by integers of at most `limit`, times `scale`.
struct Code {
  float scale;
  float bias;  // minus half the squared length of the residual; for products, the row's product with the
               // centroid
};

// Encode a row as an int8 residual code, and return the parameters of the code.
// Writes `width` numbers to `residual`, and code_width(width) numbers to `code`, padded with 0.
Code encode(const float* row, const float* centroid, std::int64_t width, bool product, float* residual,
            std::int8_t* code, const CodeFormat& format = kLongCodes);

// Store a code as column number `column` of the panels.
// A panel interleaves kPanel columns: four numbers of each column in turn.
void store_code(const std::int8_t* code, std::int64_t coded, std::int64_t column, std::uint8_t* panels,
                const CodeFormat& format = kLongCodes);

// Read the code of column number `column` from the panels.
void load_code(const std::uint8_t* panels, std::int64_t coded, std::int64_t column, std::int8_t* code,
               const CodeFormat& format = kLongCodes);

// Set products[i * stride + c] to the dot product of row i and column c, for all columns of n_panels panels.
void code_products(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                   const std::uint8_t* panels, std::int64_t n_panels, std::int32_t* products,
                   std::int64_t stride, const CodeFormat& format = kLongCodes);

// Write every index j in [begin, end) to `found`, in order, that satisfies
//   products[j] * scales[j] * scale + biases[j] + bias >= min(threshold, thresholds[j]).
// Return the number of indices written.
int select_bounds(const std::int32_t* products, const float* scales, const float* biases,
                  const float* thresholds, float scale, float bias, float threshold, int begin, int end,
                  std::int32_t* found);

// The candidates of one row while its inverted lists are scanned.
// A slot is the number of a column, counted over all panels.
struct Reservoir {
  float* scores;
  std::int32_t* slots;
  std::int64_t count, capacity;  // room for at least kPanel more than are kept after a pruning
};

// Add the columns in [begin, end) whose scores reach the threshold to a reservoir.
// The score of column c is (products[c] * scales[c]) * scale - biases[c] + bias. Its slot is first + c.
//
// Stops early if the reservoir has no room for kPanel more candidates.
// Returns the next column to test.
std::int64_t select_codes(const std::int32_t* products, const float* scales, const float* biases, float scale,
                          float bias, float threshold, std::int64_t begin, std::int64_t end,
                          std::int32_t first, Reservoir& reservoir);

}  // namespace agglo
