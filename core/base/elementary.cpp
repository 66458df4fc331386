#include "base/elementary.hpp"

#include <cmath>
#include <limits>

namespace agglo {
namespace {

// ln 2 as a sum of two parts. kLn2High has so few bits that its products with exponents are exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

// Computes ln x = e ln 2 + ln m, where x = m 2^e and m is close to 1.
// ln m = 2 artanh((m - 1) / (m + 1)) is the sum of a power series.
double portable_log(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {  // the square root of 1/2
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * square;
  const double e = exponent;
  return e * kLn2High + (2 * s + (2 * s * series + e * kLn2Low));
}

// Computes exp(x) = 2^k exp(r), where x = k ln 2 + r. exp(r) is the sum of its Taylor series.
double portable_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  const double k = std::floor(x / (kLn2High + kLn2Low) + 0.5), r = (x - k * kLn2High) - k * kLn2Low;
  double series = 1;
  for (int n = 14; n >= 1; --n) series = 1 + r * series / n;
  return std::ldexp(series, static_cast<int>(k));
}

}  // namespace agglo
