// Bindings of core/base and core/simd: portable logarithm and exponential functions, and the SIMD level.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/elementary.hpp"
#include "python.hpp"
#include "simd/dispatch.hpp"

namespace agglo::python {
namespace {

template <double (*function)(double)>
std::vector<double> map(std::span<const double> values) {
  std::vector<double> results(values.size());
  std::transform(values.begin(), values.end(), results.begin(), function);
  return results;
}

}  // namespace

void bind_base(nb::module_& module) {
  module.def("simd_level", [] { return std::string(name_of(simd_level())); });
  module.def("log", &map<portable_log>, "values"_a);
  module.def("exp", &map<portable_exp>, "values"_a);
}

}  // namespace agglo::python
