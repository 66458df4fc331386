// The number types of points. Numbers of fewer than four bytes are stored as they are and widened in blocks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace agglo {

// A finite number in IEEE half precision, as in NumPy's float16.
struct Half {
  std::uint16_t bits;

  // Shifts exponent and fraction to where float32 has them. A product corrects the bias of the exponent; it
  // is exact, also for subnormal numbers.
  operator float() const {
    const float magnitude = std::bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | std::uint32_t{bits & 0x8000u}
                                                                              << 16);
  }
};

// The type in which numbers of type T are computed if float64 is not needed. It represents all of them
// exactly.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Return the power of two whose square scales squared lengths of at most `largest` > 0 to at most 1. No
// logarithms, because their bits differ between processors.
inline double unit_scale(double largest) {
  int exponent;
  if (std::frexp(largest, &exponent) == 0.5)
    --exponent;  // 2^exponent is the smallest power that is at least `largest`
  return std::ldexp(1.0, -(exponent >= 0 ? (exponent + 1) / 2 : exponent / 2));
}

// The largest scale of points. With it, squared distances of numbers up to 1e100 stay finite.
constexpr double kMaxScale = 0x1p150;

// Instantiate a macro for every number type. All searches are instantiated for these.
#define AGGLO_EACH_NUMBER(instantiate) \
  instantiate(float) instantiate(double) instantiate(Half) instantiate(std::int8_t) instantiate(std::uint8_t)

}  // namespace agglo
