// Bindings of core/points: duplicates and principal directions.
#include "points/duplicates.hpp"
#include "points/projection.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class Word>
nb::object find_duplicates(const In<std::int64_t>& indptr, const In<Word>& numbers, bool floating,
                           int n_threads) {
  return to_numpy(without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::first_duplicates(span(indptr), span(numbers), floating, pool);
  }));
}

nb::tuple find_principal_directions(const Rows<float>& rows, std::int64_t count, int iterations) {
  auto directions = without_gil([&] {
    return agglo::principal_directions(rows.data(), static_cast<std::int64_t>(rows.shape(0)),
                                       static_cast<std::int64_t>(rows.shape(1)), count, iterations);
  });
  return nb::make_tuple(to_numpy(std::move(directions.rows)), to_numpy(std::move(directions.squares)));
}

}  // namespace

void bind_points(nb::module_& module) {
  const auto define = [&](auto word) {
    module.def("find_duplicates", &find_duplicates<decltype(word)>, "indptr"_a, "numbers"_a, "floating"_a,
               "n_threads"_a);
  };
  define(std::uint8_t{}), define(std::uint16_t{}), define(std::uint32_t{}), define(std::uint64_t{});
  module.def("find_principal_directions", &find_principal_directions, "rows"_a, "count"_a, "iterations"_a);
}

}  // namespace agglo::python
