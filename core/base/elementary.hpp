// Logarithm and exponential whose bits are the same on every machine. Those of the C library and of NumPy
// differ in the last bit between processors, because they use fused operations where available.
#pragma once

namespace agglo {

// Return the natural logarithm or the exponential, within about two units in the last place.
double portable_log(double x);
double portable_exp(double x);

}  // namespace agglo
