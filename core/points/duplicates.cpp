#include "points/duplicates.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kGrain = 4096;  // rows per chunk of parallel work

// Rows of numbers. Two rows are compared, and a row is hashed, by the bits of their numbers.
template <class Word>
class Rows {
 public:
  Rows(std::span<const std::int64_t> indptr, std::span<const Word> numbers, bool floating)
      : indptr_(indptr),
        numbers_(numbers),
        negative_zero_(floating ? Word{1} << (8 * sizeof(Word) - 1) : 0) {}

  std::int64_t size() const { return static_cast<std::int64_t>(indptr_.size()) - 1; }

  // Returns the hash of a row. The hash is computed in four lanes that do not depend on each other.
  // So the processor need not wait for one multiplication before it starts the next one.
  std::uint64_t hash(std::int64_t i) const {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
    const auto row = numbers(i);
    std::uint64_t lane[4] = {row.size(), 1, 2, 3};
    for (std::size_t k = 0; k < row.size(); ++k) {
      std::uint64_t& sum = lane[k % 4];
      sum = (sum ^ canonical(row[k])) * kOdd;
      sum ^= sum >> 29;
    }
    return ((lane[0] * kOdd ^ lane[1]) * kOdd ^ lane[2]) * kOdd ^ lane[3];
  }

  bool equal(std::int64_t i, std::int64_t j) const {
    const auto a = numbers(i), b = numbers(j);
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](Word x, Word y) { return canonical(x) == canonical(y); });
  }

 private:
  std::span<const Word> numbers(std::int64_t i) const {
    return numbers_.subspan(indptr_[i], indptr_[i + 1] - indptr_[i]);
  }
  Word canonical(Word number) const { return number == negative_zero_ ? Word{0} : number; }

  const std::span<const std::int64_t> indptr_;
  const std::span<const Word> numbers_;
  const Word negative_zero_;
};

}  // namespace

template <class Word>
std::vector<std::int32_t> first_duplicates(std::span<const std::int64_t> indptr,
                                           std::span<const Word> numbers, bool floating, ThreadPool& pool) {
  const Rows<Word> rows(indptr, numbers, floating);
  const std::int64_t n = rows.size();
  std::vector<std::uint64_t> hash(n);
  pool.ranges(n, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) hash[i] = rows.hash(i);
  });
  std::vector<std::int32_t> first(n);
  // An open-addressing hash table that holds the first row of each group of duplicates.
  const int bits = std::bit_width(static_cast<std::uint64_t>(n)) + 1;
  std::vector<std::int32_t> table(std::size_t{1} << bits, -1);
  for (std::int64_t i = 0; i < n; ++i) {
    std::size_t slot = hash[i] >> (64 - bits);
    for (;; slot = (slot + 1) & (table.size() - 1)) {
      const std::int32_t other = table[slot];
      if (other == -1) table[slot] = static_cast<std::int32_t>(i);
      if (other == -1 || (hash[other] == hash[i] && rows.equal(other, i))) break;
    }
    first[i] = table[slot];
  }
  return first;
}

Duplicates find_duplicates(Hashes hashes, const std::function<bool(std::int32_t, std::int32_t)>& is_equal) {
  const std::int64_t n = static_cast<std::int64_t>(hashes.size());
  std::sort(hashes.begin(), hashes.end());

  // Items with equal hashes are nearly always equal. They are compared, because hashes may collide.
  // Until the groups are numbered, `inverse` holds for each item the first item that is equal to it.
  Duplicates result;
  result.inverse.resize(n);
  std::vector<std::int32_t> distinct;  // the distinct items that have the current hash
  for (std::int64_t s = 0; s < n; ++s) {
    const std::int32_t i = hashes[s].second;
    if (s == 0 || hashes[s - 1].first != hashes[s].first) distinct.clear();
    const auto first =
        std::find_if(distinct.begin(), distinct.end(), [&](std::int32_t j) { return is_equal(i, j); });
    result.inverse[i] = first == distinct.end() ? i : *first;
    if (first == distinct.end()) distinct.push_back(i);
  }
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t first = result.inverse[i];
    if (first == i) {
      result.inverse[i] = static_cast<std::int32_t>(result.first.size());
      result.first.push_back(i);
    } else {
      result.inverse[i] = result.inverse[first];
    }
  }
  result.groups = group_by_label(std::span<const std::int32_t>(result.inverse), result.first.size());
  return result;
}

Duplicates find_duplicates(const AnyPoints& points, ThreadPool& pool) {
  const std::int64_t n = points.n;
  const std::size_t bytes = points.row_bytes();
  Hashes hashes(n);
  pool.ranges(n, kGrain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i)
      hashes[i] = {hash_bytes(points.row(i), bytes), static_cast<std::int32_t>(i)};
  });
  return find_duplicates(std::move(hashes), [&](std::int32_t i, std::int32_t j) {
    return std::memcmp(points.row(i), points.row(j), bytes) == 0;
  });
}

#define AGGLO_FIRST_DUPLICATES(Word)                                                                        \
  template std::vector<std::int32_t> first_duplicates(std::span<const std::int64_t>, std::span<const Word>, \
                                                      bool, ThreadPool&);
AGGLO_FIRST_DUPLICATES(std::uint8_t)
AGGLO_FIRST_DUPLICATES(std::uint16_t)
AGGLO_FIRST_DUPLICATES(std::uint32_t)
AGGLO_FIRST_DUPLICATES(std::uint64_t)

}  // namespace agglo
