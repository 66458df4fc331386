// 384-bit integers, for exact sums of float32 weights of any magnitude.
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace agglo {

// A 384-bit integer in two's complement. Its first limb holds the lowest 64 bits.
// No operation checks for overflow.
class Int384 {
 public:
  static constexpr std::size_t kLimbs = 6;

  Int384() = default;

  // Converts a double without rounding. The double must be a whole number with a magnitude below 2^383.
  explicit Int384(double whole) {
    int exponent;
    auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(whole, &exponent), 53));
    exponent -= 53;
    if (exponent < 0) digits /= std::int64_t{1} << -exponent, exponent = 0;
    const auto first = static_cast<std::size_t>(exponent) / 64;
    const auto shifted = static_cast<__int128>(digits) * (static_cast<__int128>(1) << exponent % 64);
    for (std::size_t k = 0; k < kLimbs; ++k) {
      if (k < first)
        limbs_[k] = 0;
      else
        limbs_[k] = static_cast<std::uint64_t>(shifted >> (k == first ? 0 : k == first + 1 ? 64 : 127));
    }
  }

  explicit Int384(std::span<const std::int64_t> limbs) {
    for (std::size_t k = 0; k < kLimbs; ++k) limbs_[k] = static_cast<std::uint64_t>(limbs[k]);
  }

  Int384& operator+=(const Int384& other) {
    unsigned __int128 carry = 0;
    for (std::size_t k = 0; k < kLimbs; ++k) {
      carry += static_cast<unsigned __int128>(limbs_[k]) + other.limbs_[k];
      limbs_[k] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return *this;
  }

  // A total order for sorting. It differs from the order of the values.
  auto operator<=>(const Int384&) const = default;

  // Returns the nearest double. If two doubles are equally near, returns the double with an even last bit.
  explicit operator double() const {
    const bool negative = limbs_[kLimbs - 1] >> 63;
    Int384 magnitude = *this;
    if (negative) {
      for (std::uint64_t& limb : magnitude.limbs_) limb = ~limb;
      magnitude += Int384(1.0);
    }
    std::size_t last = kLimbs - 1;
    while (last > 1 && magnitude.limbs_[last] == 0) --last;
    auto top = static_cast<unsigned __int128>(magnitude.limbs_[last]) << 64 | magnitude.limbs_[last - 1];
    // `top` holds the 128 highest bits. Below, it is rounded to 53 bits. If any bit under `top` is 1, `top`
    // has more than 54 significant bits. Such bits matter only for ties, so setting the last bit of `top`
    // represents them.
    for (std::size_t k = 0; k + 1 < last; ++k)
      if (magnitude.limbs_[k] != 0) top |= 1;
    const double value = std::ldexp(static_cast<double>(top), static_cast<int>(64 * (last - 1)));
    return negative ? -value : value;
  }

 private:
  std::array<std::uint64_t, kLimbs> limbs_;
};

}  // namespace agglo
