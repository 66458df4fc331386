// Logarithm and exponential whose bits are the same on every machine. Those of the C library and of NumPy use
// fused operations and wider registers where the processor has them, and then differ in the last bit.
#pragma once

namespace agglo {

// The natural logarithm and the exponential, within about two units of the last place.
double portable_log(double x);
double portable_exp(double x);

}  // namespace agglo
