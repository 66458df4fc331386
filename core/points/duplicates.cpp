#include "points/duplicates.hpp"

#include <algorithm>
#include <bit>

namespace agglo {
namespace {

constexpr std::int64_t kGrain = 4096;

template <class Word>
class Rows {
 public:
  Rows(std::span<const std::int64_t> indptr, std::span<const Word> numbers, bool floating)
      : indptr_(indptr),
        numbers_(numbers),
        negative_zero_(floating ? Word{1} << (8 * sizeof(Word) - 1) : 0) {}

  std::int64_t size() const { return static_cast<std::int64_t>(indptr_.size()) - 1; }

  // Four sums side by side, so that a processor need not wait for one number to take up the next.
  std::uint64_t hash(std::int64_t i) const {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
    const auto row = numbers(i);
    std::uint64_t lane[4] = {row.size(), 1, 2, 3};
    for (std::size_t k = 0; k < row.size(); ++k) {
      std::uint64_t& sum = lane[k % 4];
      sum = (sum ^ plain(row[k])) * kOdd;
      sum ^= sum >> 29;
    }
    return ((lane[0] * kOdd ^ lane[1]) * kOdd ^ lane[2]) * kOdd ^ lane[3];
  }

  bool equal(std::int64_t i, std::int64_t j) const {
    const auto a = numbers(i), b = numbers(j);
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](Word x, Word y) { return plain(x) == plain(y); });
  }

 private:
  std::span<const Word> numbers(std::int64_t i) const {
    return numbers_.subspan(indptr_[i], indptr_[i + 1] - indptr_[i]);
  }
  Word plain(Word number) const { return number == negative_zero_ ? Word{0} : number; }

  const std::span<const std::int64_t> indptr_;
  const std::span<const Word> numbers_;
  const Word negative_zero_;
};

}  // namespace

template <class Word>
std::vector<std::int32_t> first_equal(std::span<const std::int64_t> indptr, std::span<const Word> numbers,
                                      bool floating, ThreadPool& pool) {
  const Rows<Word> rows(indptr, numbers, floating);
  const std::int64_t n = rows.size();
  std::vector<std::uint64_t> hash(n);
  pool.ranges(n, kGrain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) hash[i] = rows.hash(i);
  });
  std::vector<std::int32_t> found(n);
  const int bits = std::bit_width(static_cast<std::uint64_t>(n)) + 1;
  std::vector<std::int32_t> table(std::size_t{1} << bits, -1);
  for (std::int64_t i = 0; i < n; ++i) {
    std::size_t slot = hash[i] >> (64 - bits);
    for (;; slot = (slot + 1) & (table.size() - 1)) {
      const std::int32_t other = table[slot];
      if (other == -1) table[slot] = static_cast<std::int32_t>(i);
      if (other == -1 || (hash[other] == hash[i] && rows.equal(other, i))) break;
    }
    found[i] = table[slot];
  }
  return found;
}

template std::vector<std::int32_t> first_equal(std::span<const std::int64_t>, std::span<const std::uint8_t>,
                                               bool, ThreadPool&);
template std::vector<std::int32_t> first_equal(std::span<const std::int64_t>, std::span<const std::uint16_t>,
                                               bool, ThreadPool&);
template std::vector<std::int32_t> first_equal(std::span<const std::int64_t>, std::span<const std::uint32_t>,
                                               bool, ThreadPool&);
template std::vector<std::int32_t> first_equal(std::span<const std::int64_t>, std::span<const std::uint64_t>,
                                               bool, ThreadPool&);

}  // namespace agglo
