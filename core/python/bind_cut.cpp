// Bindings of the cuts of least cost: node costs, the DP-means path, and cuts into exactly k clusters.
#include "python.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/exact_k.hpp"
#include "tree/node_costs.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple compute_node_costs(const Rows<Bits<T>>& X, const In<std::int32_t>& parent,
                             const In<std::int32_t>& size, bool among_points, int n_threads,
                             const nb::object& progress) {
  const auto centers = among_points ? agglo::CenterKind::points : agglo::CenterKind::means;
  auto found = without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::compute_node_costs(to_points<T>(X), span(parent), span(size), centers, pool, report);
  });
  return nb::make_tuple(to_numpy(std::move(found.costs)), to_numpy(std::move(found.centers)));
}

template <class T>
void bind_costs(nb::module_& module) {
  module.def("compute_node_costs", &compute_node_costs<T>, "X"_a.noconvert(), "parent"_a, "size"_a,
             "among_points"_a, "n_threads"_a, "progress"_a.none());
}

nb::object select_cheapest_nodes(const In<std::int32_t>& parent, const In<double>& costs) {
  return to_numpy(without_gil([&] { return agglo::select_cheapest_nodes(span(parent), span(costs)); }));
}

nb::tuple compute_price_path(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves) {
  auto path = without_gil([&] { return agglo::compute_price_path(span(parent), span(costs), leaves); });
  return nb::make_tuple(to_numpy(std::move(path.critical)), to_numpy(std::move(path.lams)),
                        to_numpy(std::move(path.costs)), to_numpy(std::move(path.clusters)));
}

nb::tuple find_possible_counts(const In<std::int32_t>& parent, std::int64_t leaves) {
  std::vector<std::int64_t> first, last;
  for (const auto& range : without_gil([&] { return agglo::find_possible_counts(span(parent), leaves); })) {
    first.push_back(range.first);
    last.push_back(range.last);
  }
  return nb::make_tuple(to_numpy(std::move(first)), to_numpy(std::move(last)));
}

nb::object select_k_nodes(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves,
                          std::int64_t clusters, double lam) {
  const nb::object none = nb::none();
  return to_numpy(without_gil([&] {
    return agglo::select_k_nodes(span(parent), span(costs), leaves, clusters, lam, make_report(none));
  }));
}

}  // namespace

void bind_cut(nb::module_& module) {
  bind_costs<float>(module);
  bind_costs<double>(module);
  bind_costs<agglo::Half>(module);
  module.def("select_cheapest_nodes", &select_cheapest_nodes, "parent"_a, "costs"_a);
  module.def("compute_price_path", &compute_price_path, "parent"_a, "costs"_a, "leaves"_a);
  module.def("find_possible_counts", &find_possible_counts, "parent"_a, "leaves"_a);
  module.def("select_k_nodes", &select_k_nodes, "parent"_a, "costs"_a, "leaves"_a, "clusters"_a, "lam"_a);
}

}  // namespace agglo::python
