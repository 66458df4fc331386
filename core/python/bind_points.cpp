// Bindings of core/points: duplicates and principal directions.
#include "points/duplicates.hpp"
#include "points/projection.hpp"
#include "python.hpp"

namespace agglo {

static auto to_tuple(PrincipalDirections&& found) {
  return std::tuple(std::move(found.rows), std::move(found.squares));
}

}  // namespace agglo

namespace agglo::python {

void bind_points(nb::module_& module) {
  const auto define = [&](auto word) {
    module.def("find_duplicates", &first_duplicates<decltype(word)>, "indptr"_a, "numbers"_a, "floating"_a,
               "n_threads"_a, ReleaseGil());
  };
  define(std::uint8_t{}), define(std::uint16_t{}), define(std::uint32_t{}), define(std::uint64_t{});
  module.def("find_principal_directions", &find_principal_directions, "rows"_a, "count"_a, "iterations"_a,
             ReleaseGil());
}

}  // namespace agglo::python
