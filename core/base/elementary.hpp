// Logarithm and exponential whose bits are the same on every machine. Those of the C library and of NumPy use
// fused operations and wider registers where the processor has them, and then differ in the last bit.
#pragma once

namespace agglo {

// The natural logarithm and the exponential, within about two units of the last place.
double log_of(double x);
double exp_of(double x);

}  // namespace agglo
