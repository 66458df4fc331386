#include "points/order.hpp"

#include <algorithm>
#include <numeric>

namespace agglo {
namespace {

constexpr std::int64_t kSample = 128;  // rows in the sample that estimates the spread of a coordinate

// Sorts the positions of rows by halving them recursively.
class Halving {
 public:
  Halving(std::span<const float> coordinates, std::int64_t width, std::int64_t block, std::int64_t leaf)
      : coordinates_(coordinates), width_(width), block_(block), leaf_(leaf) {}

  void halve(std::span<std::int32_t> positions) const {
    const std::int64_t n = static_cast<std::int64_t>(positions.size());
    if (n <= leaf_) return;
    const std::int64_t unit = n > block_ ? block_ : leaf_;
    const std::int64_t half = ((n + unit - 1) / unit + 1) / 2 * unit;
    const std::int64_t widest = widest_coordinate(positions);
    const auto at = [&](std::int32_t position) { return coordinates_[position * width_ + widest]; };
    std::nth_element(positions.begin(), positions.begin() + half, positions.end(),
                     [&](std::int32_t a, std::int32_t b) { return at(a) != at(b) ? at(a) < at(b) : a < b; });
    halve(positions.first(half));
    halve(positions.subspan(half));
  }

 private:
  std::int64_t widest_coordinate(std::span<const std::int32_t> positions) const {
    const std::int64_t n = static_cast<std::int64_t>(positions.size()), sample = std::min(n, kSample);
    std::int64_t widest = 0;
    double most = -1;
    for (std::int64_t c = 0; c < width_; ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t s = 0; s < sample; ++s) {
        const double x = coordinates_[positions[s * n / sample] * width_ + c];
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

std::vector<std::int32_t> order_by_halving(std::span<const float> coordinates, std::int64_t width,
                                           std::int64_t block, std::int64_t leaf) {
  std::vector<std::int32_t> positions(coordinates.size() / static_cast<std::size_t>(width));
  std::iota(positions.begin(), positions.end(), 0);
  Halving(coordinates, width, block, leaf).halve(positions);
  return positions;
}

}  // namespace agglo
