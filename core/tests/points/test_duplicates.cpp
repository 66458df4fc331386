#include <bit>
#include <random>
#include <vector>

#include "points/duplicates.hpp"
#include "test_case.hpp"

using namespace agglo;

TEST_CASE("every row finds its first duplicate; 0 and -0 are equal") {
  // Rows have up to three small numbers, and each row is compared with all previous rows. Some zeros are -0.
  std::mt19937 random(1);
  std::vector<std::int64_t> indptr{0};
  std::vector<std::uint32_t> numbers;
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 3000; ++i) {
    rows.emplace_back();
    for (unsigned k = random() % 4; k > 0; --k) {
      rows.back().push_back((random() % 2 ? 1.0f : -1.0f) * static_cast<float>(random() % 6));
      numbers.push_back(std::bit_cast<std::uint32_t>(rows.back().back()));
    }
    indptr.push_back(static_cast<std::int64_t>(numbers.size()));
  }
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    const auto found = first_duplicates<std::uint32_t>(indptr, numbers, true, pool);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::size_t first = 0;
      while (rows[first] != rows[i]) ++first;
      CHECK(found[i] == static_cast<std::int32_t>(first));
    }
  }
}

TEST_CASE("integers with the bits of -0 are not 0") {
  ThreadPool pool(1);
  const std::vector<std::uint8_t> bytes{128, 0, 128};
  CHECK(first_duplicates<std::uint8_t>(std::vector<std::int64_t>{0, 1, 2, 3}, bytes, false, pool) ==
        (std::vector<std::int32_t>{0, 1, 0}));
}
