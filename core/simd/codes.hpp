// int8 codes of residuals, and dot products of int8 codes.
// The dot products are exact integers, so they are the same on every machine.
#pragma once

#include <cstdint>

namespace agglo {

constexpr std::int64_t kPanel = 16;  // codes per panel; a kernel multiplies a row by all codes of a panel

// Return the number of bytes of an int8 code: `width`, rounded up to a multiple of four.
inline std::int64_t code_width(std::int64_t width) { return (width + 3) / 4 * 4; }

// The format of int8 codes. In a panel, a number of a code is stored as the unsigned byte number + shift.
// The products of long codes are fast only with VNNI instructions.
// The products of short codes are fast with AVX2, because the sum of four products fits into 16 bits.
struct CodeFormat {
  int limit;  // the largest magnitude of a number in a code
  int shift;
};
constexpr CodeFormat kLongCodes{127, 128}, kShortCodes{63, 64};

// The parameters of an int8 code. The residual is a row minus the centroid of its inverted list.
// `scale` times the int8 code approximates the residual.
struct Code {
  float scale;
  // Under distances, the bias is minus half the squared length of the residual.
  // Under dot products, the bias is the dot product of the row and the centroid.
  float bias;
};

// Encode the residual of a row as an int8 code, and return the parameters of the code.
// Writes the residual to `residual`: `width` numbers. Writes the code to `code`: code_width(width) numbers.
// The numbers of the code after the first `width` numbers are 0.
Code encode(const float* row, const float* centroid, std::int64_t width, bool product, float* residual,
            std::int8_t* code, const CodeFormat& format = kLongCodes);

// Store an int8 code as column number `column` of the panels. Each column of a panel is one code.
// A panel interleaves kPanel columns: first come four numbers of each column, then the next four of each.
void store_code(const std::int8_t* code, std::int64_t coded, std::int64_t column, std::uint8_t* panels,
                const CodeFormat& format = kLongCodes);

// Read the int8 code that is stored as column number `column` of the panels.
void load_code(const std::uint8_t* panels, std::int64_t coded, std::int64_t column, std::int8_t* code,
               const CodeFormat& format = kLongCodes);

// Set products[i * stride + c] to the dot product of row i and column c.
// The function does so for all rows, and for all columns of n_panels panels.
void code_products(const std::int8_t* rows, std::int64_t n_rows, std::int64_t coded,
                   const std::uint8_t* panels, std::int64_t n_panels, std::int32_t* products,
                   std::int64_t stride, const CodeFormat& format = kLongCodes);

// Select the rows j in [begin, end) that may be close to a given row, by upper bounds of similarities (see
// CodedRows). Write the indices of the selected rows to `found` in increasing order, and return their number.
// `threshold` belongs to the given row, and thresholds[j] to row j. Row j is selected if
//   products[j] * scales[j] * scale + biases[j] + bias >= min(threshold, thresholds[j]).
int select_bounds(const std::int32_t* products, const float* scales, const float* biases,
                  const float* thresholds, float scale, float bias, float threshold, int begin, int end,
                  std::int32_t* found);

// The candidate neighbours of one row while the row's inverted lists are scanned.
// The slot of a candidate is the number of its column, counted over all panels of all lists.
struct Reservoir {
  float* scores;
  std::int32_t* slots;
  // After a pruning, `capacity` must exceed `count` by at least kPanel.
  std::int64_t count, capacity;
};

// Add each column in [begin, end) to a reservoir if the score of the column reaches the threshold.
// The score of column c is (products[c] * scales[c]) * scale - biases[c] + bias.
// The slot of column c is first + c.
//
// The function stops early if the reservoir has no room for kPanel more candidates.
// The function returns the first column that it has not tested.
std::int64_t select_codes(const std::int32_t* products, const float* scales, const float* biases, float scale,
                          float bias, float threshold, std::int64_t begin, std::int64_t end,
                          std::int32_t first, Reservoir& reservoir);

}  // namespace agglo
