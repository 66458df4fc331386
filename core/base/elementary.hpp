// Logarithm and exponential with the same bits on every machine.
// The results of std::log, std::exp and NumPy differ in the last bit between processors.
// The reason is that these libraries use fused multiply-add operations if the processor supports them.
#pragma once

namespace agglo {

// Return the natural logarithm or the exponential of x. The error is about two units in the last place.
double portable_log(double x);
double portable_exp(double x);

}  // namespace agglo
