// What points are made of. Numbers of less than four bytes are kept as they are and widened where they are
// used, a block at a time.
#pragma once

#include <bit>
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

// Every search is instantiated for these.
#define AGGLO_EACH_NUMBER(instantiate) \
  instantiate(float) instantiate(double) instantiate(Half) instantiate(std::int8_t) instantiate(std::uint8_t)

}  // namespace agglo
