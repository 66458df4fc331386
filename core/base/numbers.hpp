// The number types of points.
// Numbers with fewer than four bytes are stored unchanged. Searches convert them to float32 in blocks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace agglo {

// A finite number in IEEE half precision, which NumPy calls float16.
struct Half {
  std::uint16_t bits;

  // Converts to float32. The exponent and the fraction are shifted to their places in float32.
  // Then a multiplication corrects the exponent bias. The multiplication is exact, also for subnormal
  // numbers.
  operator float() const {
    const float magnitude = std::bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | std::uint32_t{bits & 0x8000u}
                                                                              << 16);
  }
};

// The type for computations with numbers of type T that do not need float64.
// Wide<T> represents all numbers of type T exactly.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Return a power of two. If all rows are multiplied by this factor, no row is longer than 1.
// `largest` is the maximum squared length of the rows. It must be above 0.
// The function uses no logarithms, because the last bits of logarithms differ between processors.
inline double unit_scale(double largest) {
  int exponent;
  if (std::frexp(largest, &exponent) == 0.5)
    --exponent;  // 2^exponent is the smallest power of two that is at least `largest`
  return std::ldexp(1.0, -(exponent >= 0 ? (exponent + 1) / 2 : exponent / 2));
}

// The largest factor by which searches scale points.
// With this factor, the squared distances of points with numbers up to 1e100 stay finite.
constexpr double kMaxScale = 0x1p150;

// The number types of points. All neighbour searches of dense points support all of these types.
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

// Call the template `run` with the C++ type T of a number type, and return its result.
template <class Run>
auto with_number_type(NumberType type, const Run& run) {
  switch (type) {
    case NumberType::float32:
      return run.template operator()<float>();
    case NumberType::float64:
      return run.template operator()<double>();
    case NumberType::float16:
      return run.template operator()<Half>();
    case NumberType::int8:
      return run.template operator()<std::int8_t>();
    default:
      return run.template operator()<std::uint8_t>();
  }
}

// Return the number of bytes of one number of this type.
inline std::int64_t size_of(NumberType type) {
  constexpr std::int64_t sizes[] = {4, 8, 2, 1, 1};
  return sizes[static_cast<int>(type)];
}

}  // namespace agglo
