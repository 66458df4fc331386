// Points of any precision against a center in float64, in the widest instructions that the machine at hand
// has. Their results are the same bits on every machine.
#pragma once

#include <bit>
#include <cstdint>

namespace agglo {

// A finite number in IEEE half precision, as NumPy's float16 holds it.
struct Half {
  std::uint16_t bits;

  // Exponent and fraction in the place where float32 has them, with the exponent's bias put right by a
  // product, which is exact, subnormal numbers among them.
  operator double() const {
    const float magnitude = std::bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | std::uint32_t{bits & 0x8000u}
                                                                              << 16);
  }
};

// The squared distance of x and the center, of n columns each.
template <class T>
double squared_distance_to(const double* center, const T* x, std::int64_t n);

// The same, after which the center has moved by `share` of its way to x.
template <class T>
double pull(double* center, const T* x, double share, std::int64_t n);

}  // namespace agglo
