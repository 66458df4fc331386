#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "simd/codes.hpp"
#include "simd/dispatch.hpp"
#include "test_case.hpp"

namespace {

using agglo::kPanel;

// Every SIMD level must give the same products and candidates as plain C++.
void check_width(std::int64_t width, std::int64_t n_rows, std::int64_t n_panels,
                 const agglo::CodeFormat& format, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  const std::int64_t coded = agglo::code_width(width), columns = n_panels * kPanel;
  std::vector<float> row(width), center(width), left(width), scales(columns), biases(columns);
  std::vector<std::int8_t> code(coded), rows(n_rows * coded);
  std::vector<std::uint8_t> panels(columns * coded);
  std::vector<std::vector<std::int8_t>> store_code(columns);
  for (float& x : center) x = normal(rng);
  const auto make = [&](bool product) {
    for (float& x : row) x = normal(rng);
    const agglo::Code made =
        agglo::encode(row.data(), center.data(), width, product, left.data(), code.data(), format);
    float bias = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      CHECK(left[j] == row[j] - center[j]);
      CHECK(std::abs(left[j] - made.scale * static_cast<float>(code[j])) <= 0.51f * made.scale);
      bias += product ? row[j] * center[j] : left[j] * left[j] / -2;
    }
    CHECK(std::abs(made.bias - bias) <= 1e-4f * static_cast<float>(width));
    for (std::int64_t j = width; j < coded; ++j) CHECK(code[j] == 0);
  };
  for (std::int64_t c = 0; c < columns; ++c) {
    make(false);
    agglo::store_code(code.data(), coded, c, panels.data(), format);
    store_code[c] = code;
    std::vector<std::int8_t> loaded(coded);
    agglo::load_code(panels.data(), coded, c, loaded.data(), format);
    CHECK(loaded == code);
    scales[c] = std::abs(normal(rng));
    biases[c] = normal(rng);
  }
  for (std::int64_t i = 0; i < n_rows; ++i) {
    make(true);
    std::copy(code.begin(), code.end(), rows.begin() + i * coded);
  }
  std::vector<float> first_scores;
  std::vector<std::int32_t> first_slots;
  for (const agglo::Simd level : agglo::available_levels()) {
    agglo::set_simd_level(level);
    std::vector<std::int32_t> products(n_rows * columns);
    agglo::code_products(rows.data(), n_rows, coded, panels.data(), n_panels, products.data(), columns,
                         format);
    for (std::int64_t i = 0; i < n_rows; ++i)
      for (std::int64_t c = 0; c < columns; ++c) {
        std::int32_t sum = 0;
        for (std::int64_t j = 0; j < coded; ++j) sum += rows[i * coded + j] * store_code[c][j];
        CHECK(products[i * columns + c] == sum);
      }
    // The reservoir has room for only two panels, so that the selection stops early.
    std::vector<float> scores(3 * kPanel), all_scores;
    std::vector<std::int32_t> slots(3 * kPanel), all_slots;
    const std::int64_t end = columns - 3;
    for (std::int64_t c = 0; c < end;) {
      agglo::Reservoir reservoir{scores.data(), slots.data(), 0, 2 * kPanel};
      c = agglo::select_codes(products.data(), scales.data(), biases.data(), 1e-4f, 0.5f, 0.0f, c, end, 100,
                              reservoir);
      CHECK(reservoir.count <= reservoir.capacity);
      all_scores.insert(all_scores.end(), scores.begin(), scores.begin() + reservoir.count);
      all_slots.insert(all_slots.end(), slots.begin(), slots.begin() + reservoir.count);
    }
    CHECK(!all_slots.empty() && all_slots.front() >= 100 && all_slots.back() < 100 + end);
    if (level == agglo::Simd::plain) {
      first_scores = all_scores;
      first_slots = all_slots;
    }
    CHECK(all_scores == first_scores);
    CHECK(all_slots == first_slots);
    for (const int begin : {0, 5}) {
      std::vector<std::int32_t> found(columns), expected;
      found.resize(agglo::select_bounds(products.data(), scales.data(), biases.data(), biases.data(), 1e-3f,
                                        0.5f, 0.1f, begin, static_cast<int>(end), found.data()));
      for (int c = begin; c < end; ++c)
        if (static_cast<float>(products[c]) * scales[c] * 1e-3f + biases[c] + 0.5f >=
            std::min(0.1f, biases[c]))
          expected.push_back(c);
      CHECK(found == expected && !found.empty());
    }
  }
}

}  // namespace

TEST_CASE("every SIMD level gives the same products and candidates as plain C++") {
  for (const std::int64_t width : {1, 3, 4, 17, 64, 130})
    for (const std::int64_t n_rows : {1, 2, 3, 7, 8, 13})
      for (const std::int64_t n_panels : {1, 2, 5})
        for (const auto& format : {agglo::kLongCodes, agglo::kShortCodes})
          check_width(width, n_rows, n_panels, format, 7);
}
