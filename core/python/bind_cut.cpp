#include "python.hpp"
#include "simd/center_products.hpp"
#include "tree/exact_k.hpp"
#include "tree/node_costs.hpp"
#include "tree/price_path.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple node_costs(const Rows<Bits<T>>& X, const In<std::int32_t>& parent, const In<std::int32_t>& size,
                     bool among_points, int threads, const nb::object& progress) {
  const auto centers = among_points ? agglo::Centers::points : agglo::Centers::means;
  agglo::Costs found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::node_costs(points_of<T>(X), span(parent), span(size), centers, pool, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.costs)), out(std::move(found.centers)));
}

template <class T>
void bind_costs(nb::module_& module) {
  module.def("node_costs", &node_costs<T>, "X"_a.noconvert(), "parent"_a, "size"_a, "among_points"_a,
             "threads"_a, "progress"_a.none());
}

nb::object cheapest(const In<std::int32_t>& parent, const In<double>& costs) {
  std::vector<std::uint8_t> joined;
  {
    nb::gil_scoped_release release;
    joined = agglo::cheapest(span(parent), span(costs));
  }
  return out(std::move(joined));
}

nb::tuple price_path(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves) {
  agglo::Path path;
  {
    nb::gil_scoped_release release;
    path = agglo::price_path(span(parent), span(costs), leaves);
  }
  return nb::make_tuple(out(std::move(path.critical)), out(std::move(path.prices)),
                        out(std::move(path.costs)), out(std::move(path.clusters)));
}

nb::tuple possible_numbers(const In<std::int32_t>& parent, std::int64_t leaves) {
  std::vector<std::int64_t> first, last;
  {
    nb::gil_scoped_release release;
    for (const agglo::Run& run : agglo::possible_numbers(span(parent), leaves)) {
      first.push_back(run.first);
      last.push_back(run.last);
    }
  }
  return nb::make_tuple(out(std::move(first)), out(std::move(last)));
}

nb::object cheapest_of(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves,
                       std::int64_t clusters, double price) {
  std::vector<std::uint8_t> joined;
  {
    const nb::object none = nb::none();
    nb::gil_scoped_release release;
    joined = agglo::cheapest_of(span(parent), span(costs), leaves, clusters, price, reporter(none));
  }
  return out(std::move(joined));
}

}  // namespace

void bind_cut(nb::module_& module) {
  bind_costs<float>(module);
  bind_costs<double>(module);
  bind_costs<agglo::Half>(module);
  module.def("cheapest", &cheapest, "parent"_a, "costs"_a);
  module.def("price_path", &price_path, "parent"_a, "costs"_a, "leaves"_a);
  module.def("possible_numbers", &possible_numbers, "parent"_a, "leaves"_a);
  module.def("cheapest_of", &cheapest_of, "parent"_a, "costs"_a, "leaves"_a, "clusters"_a, "price"_a);
}

}  // namespace agglo::python
