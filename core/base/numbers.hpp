// The number types of points. Types with fewer than four bytes are stored unchanged and widened in blocks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace agglo {

// A finite number in IEEE half precision, as in NumPy's float16.
struct Half {
  std::uint16_t bits;

  // Shifts exponent and fraction to their places in float32. A multiplication corrects the exponent bias.
  // The multiplication is exact, also for subnormal numbers.
  operator float() const {
    const float magnitude = std::bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | std::uint32_t{bits & 0x8000u}
                                                                              << 16);
  }
};

// The type for computations with numbers of type T if float64 is not needed.
// The type represents all numbers of type T exactly.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Return a power of two that scales rows to a length of at most 1.
// `largest` is the maximum squared length of the rows, which is above 0.
// The function uses no logarithms, because their bits differ between processors.
inline double unit_scale(double largest) {
  int exponent;
  if (std::frexp(largest, &exponent) == 0.5)
    --exponent;  // 2^exponent is the smallest power of two that is at least `largest`
  return std::ldexp(1.0, -(exponent >= 0 ? (exponent + 1) / 2 : exponent / 2));
}

// The largest scale of points. With this scale, squared distances of numbers up to 1e100 stay finite.
constexpr double kMaxScale = 0x1p150;

// The number types of points. All searches of dense points support them.
enum class NumberType { float32, float64, float16, int8, uint8 };

template <class T>
inline constexpr NumberType kNumberType = NumberType::float32;
template <>
inline constexpr NumberType kNumberType<double> = NumberType::float64;
template <>
inline constexpr NumberType kNumberType<Half> = NumberType::float16;
template <>
inline constexpr NumberType kNumberType<std::int8_t> = NumberType::int8;
template <>
inline constexpr NumberType kNumberType<std::uint8_t> = NumberType::uint8;

// Return the number of bytes per number.
inline std::int64_t size_of(NumberType type) {
  constexpr std::int64_t sizes[] = {4, 8, 2, 1, 1};
  return sizes[static_cast<int>(type)];
}

}  // namespace agglo
