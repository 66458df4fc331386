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

nb::object map(const In<double>& values, double (*function)(double)) {
  std::vector<double> results(values.shape(0));
  std::transform(values.data(), values.data() + values.shape(0), results.begin(), function);
  return to_numpy(std::move(results));
}

}  // namespace

void bind_base(nb::module_& module) {
  module.def("simd_level", [] { return std::string(agglo::name_of(agglo::simd_level())); });
  module.def("log", [](const In<double>& values) { return map(values, agglo::portable_log); });
  module.def("exp", [](const In<double>& values) { return map(values, agglo::portable_exp); });
}

}  // namespace agglo::python
