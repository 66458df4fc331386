// What points are made of. Numbers of less than four bytes are kept as they are and widened where they are
// used, a block at a time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace agglo {

// A finite number in IEEE half precision, as NumPy's float16 holds it.
struct Half {
  std::uint16_t bits;

  // Exponent and fraction in the place where float32 has them, with the exponent's bias put right by a
  // product, which is exact, subnormal numbers among them.
  operator float() const {
    const float magnitude = std::bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | std::uint32_t{bits & 0x8000u}
                                                                              << 16);
  }
};

// The type that numbers of type T are computed with, where float64 is not needed: it holds them all.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The power of two that scales squared lengths of at most `largest` > 0 to at most 1, by its square. It is
// found without logarithms, whose bits differ between processors.
inline double unit_scale(double largest) {
  int exponent;
  if (std::frexp(largest, &exponent) == 0.5)
    --exponent;  // now 2^exponent is the least power that is not smaller
  return std::ldexp(1.0, -(exponent >= 0 ? (exponent + 1) / 2 : exponent / 2));
}

// The largest factor that points are scaled by before they are compared. With it, squared distances of
// numbers up to 1e100 stay finite.
constexpr double kMaxScale = 0x1p150;

// Every search is instantiated for these.
#define AGGLO_EACH_NUMBER(instantiate) \
  instantiate(float) instantiate(double) instantiate(Half) instantiate(std::int8_t) instantiate(std::uint8_t)

}  // namespace agglo
