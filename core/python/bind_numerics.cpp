#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/elementary.hpp"
#include "points/projection.hpp"
#include "python.hpp"
#include "simd/dispatch.hpp"

namespace agglo::python {
namespace {

nb::object map(const In<double>& values, double (*function)(double)) {
  std::vector<double> results(values.shape(0));
  std::transform(values.data(), values.data() + values.shape(0), results.begin(), function);
  return out(std::move(results));
}

}  // namespace

void bind_numerics(nb::module_& module) {
  module.def("simd_level", [] { return std::string(agglo::name_of(agglo::simd_level())); });
  module.def("log", [](const In<double>& values) { return map(values, agglo::portable_log); });
  module.def("exp", [](const In<double>& values) { return map(values, agglo::portable_exp); });
  module.def("main_directions", [](const Rows<float>& rows, std::int64_t count, int iterations) {
    agglo::Directions found;
    {
      nb::gil_scoped_release release;
      found = agglo::main_directions(rows.data(), static_cast<std::int64_t>(rows.shape(0)),
                                     static_cast<std::int64_t>(rows.shape(1)), count, iterations);
    }
    return nb::make_tuple(out(std::move(found.rows)), out(std::move(found.squares)));
  });
}

}  // namespace agglo::python
