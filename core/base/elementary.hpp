// Logarithm and exponential with the same bits on every machine.
// The functions of the C library and of NumPy differ in the last bit between processors.
// The reason is that they use fused operations where available.
#pragma once

namespace agglo {

// Return the natural logarithm or the exponential. The error is about two units in the last place.
double portable_log(double x);
double portable_exp(double x);

}  // namespace agglo
