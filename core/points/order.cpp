#include "points/order.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace agglo {
namespace {

constexpr std::int64_t kRows = 1024;   // rows in a chunk of parallel work
constexpr std::int64_t kSample = 128;  // places that the spread of a coordinate is measured on

class Halving {
 public:
  Halving(std::span<const float> coordinates, std::int64_t width, std::int64_t block, std::int64_t leaf)
      : coordinates_(coordinates), width_(width), block_(block), leaf_(leaf) {}

  void halve(std::span<std::int32_t> places) const {
    const std::int64_t n = static_cast<std::int64_t>(places.size());
    if (n <= leaf_) return;
    const std::int64_t unit = n > block_ ? block_ : leaf_;
    const std::int64_t half = ((n + unit - 1) / unit + 1) / 2 * unit;
    const std::int64_t widest = widest_coordinate(places);
    const auto at = [&](std::int32_t place) { return coordinates_[place * width_ + widest]; };
    std::nth_element(places.begin(), places.begin() + half, places.end(),
                     [&](std::int32_t a, std::int32_t b) { return at(a) != at(b) ? at(a) < at(b) : a < b; });
    halve(places.first(half));
    halve(places.subspan(half));
  }

 private:
  std::int64_t widest_coordinate(std::span<const std::int32_t> places) const {
    const std::int64_t n = static_cast<std::int64_t>(places.size()), sample = std::min(n, kSample);
    std::int64_t widest = 0;
    double most = -1;
    for (std::int64_t c = 0; c < width_; ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t s = 0; s < sample; ++s) {
        const double x = coordinates_[places[s * n / sample] * width_ + c];
        sum += x;
        squares += x * x;
      }
      const double spread = squares - sum * sum / static_cast<double>(sample);
      if (spread > most) {
        most = spread;
        widest = c;
      }
    }
    return widest;
  }

  std::span<const float> coordinates_;
  std::int64_t width_, block_, leaf_;
};

}  // namespace

std::uint64_t hash(const void* data, std::size_t size, std::uint64_t state) {
  const char* bytes = static_cast<const char*>(data);
  state ^= size;
  const auto mix = [&state](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 32;
  };
  std::uint64_t word;
  for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
    std::memcpy(&word, bytes, sizeof word);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, bytes, size);
  mix(word);
  return state;
}

template <class T>
Copies copies(const Points<T>& points, ThreadPool& pool) {
  const std::int64_t n = points.n;
  const std::size_t bytes = static_cast<std::size_t>(points.d) * sizeof(T);
  Hashes hashes(n);
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i)
      hashes[i] = {hash(points.row(i), bytes), static_cast<std::int32_t>(i)};
  });
  return copies(std::move(hashes), [&](std::int32_t i, std::int32_t j) {
    return std::memcmp(points.row(i), points.row(j), bytes) == 0;
  });
}

#define AGGLO_COPIES(T) template Copies copies(const Points<T>&, ThreadPool&);
AGGLO_EACH_NUMBER(AGGLO_COPIES)

Copies copies(Hashes hashes, const std::function<bool(std::int32_t, std::int32_t)>& same) {
  const std::int64_t n = static_cast<std::int64_t>(hashes.size());
  std::sort(hashes.begin(), hashes.end());

  // Points of one hash are nearly always copies, but must be compared. `group` is the first copy, to begin
  // with.
  Copies result;
  result.group.resize(n);
  std::vector<std::int32_t> leaders;
  for (std::int64_t s = 0; s < n; ++s) {
    const std::int32_t i = hashes[s].second;
    if (s == 0 || hashes[s - 1].first != hashes[s].first) leaders.clear();
    const auto leader =
        std::find_if(leaders.begin(), leaders.end(), [&](std::int32_t j) { return same(i, j); });
    result.group[i] = leader == leaders.end() ? i : *leader;
    if (leader == leaders.end()) leaders.push_back(i);
  }

  result.indptr.push_back(0);
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t first = result.group[i];
    if (first == i) {
      result.group[i] = static_cast<std::int32_t>(result.first.size());
      result.first.push_back(i);
      result.indptr.push_back(0);
    } else {
      result.group[i] = result.group[first];
    }
    ++result.indptr[result.group[i] + 1];
  }
  std::partial_sum(result.indptr.begin(), result.indptr.end(), result.indptr.begin());
  std::vector<std::int64_t> place(result.indptr.begin(), result.indptr.end() - 1);
  result.members.resize(n);
  for (std::int32_t i = 0; i < n; ++i) result.members[place[result.group[i]]++] = i;
  return result;
}

std::vector<std::int32_t> close_order(std::span<const float> coordinates, std::int64_t width,
                                      std::int64_t block, std::int64_t leaf) {
  std::vector<std::int32_t> places(coordinates.size() / static_cast<std::size_t>(width));
  std::iota(places.begin(), places.end(), 0);
  Halving(coordinates, width, block, leaf).halve(places);
  return places;
}

}  // namespace agglo
