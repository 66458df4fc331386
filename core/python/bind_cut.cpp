// Bindings of the best cuts: node costs, the paths of DP-means and modularity, cuts into exactly k clusters,
// and condensed trees.
#include "python.hpp"
#include "tree/condense.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/exact_k.hpp"
#include "tree/modularity.hpp"
#include "tree/node_costs.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple compute_node_costs(const Rows<Bits<T>>& X, const In<std::int32_t>& parent,
                             const In<std::int32_t>& size, bool among_points, int n_threads,
                             const nb::object& progress) {
  const auto centers = among_points ? agglo::CenterKind::points : agglo::CenterKind::means;
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return agglo::compute_node_costs(to_points<T>(X), span(parent), span(size), centers, run...);
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

nb::tuple compute_node_modularity(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                                  const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                  const In<float>& values, const In<std::int32_t>& leaf_of, double reference,
                                  double scale, const In<double>& point_weights) {
  auto nodes = without_gil([&] {
    return agglo::compute_node_modularity(span(parent), span(size),
                                          {span(indptr), span(indices), span(values)}, span(leaf_of),
                                          {reference, scale, span(point_weights)});
  });
  return nb::make_tuple(to_numpy(std::move(nodes.meets)), to_numpy(std::move(nodes.volume)));
}

nb::tuple compute_modularity_path(const In<std::int32_t>& parent, std::int64_t leaves,
                                  const In<double>& meets, const In<double>& volume,
                                  const In<std::uint8_t>& given) {
  auto path = without_gil([&] {
    return agglo::compute_modularity_path(span(parent), leaves, span(meets), span(volume), span(given));
  });
  return nb::make_tuple(to_numpy(std::move(path.critical)), to_numpy(std::move(path.lams)),
                        to_numpy(std::move(path.costs)), to_numpy(std::move(path.prices)),
                        to_numpy(std::move(path.clusters)));
}

nb::object min_over_ancestors(const In<std::int32_t>& parent, const In<double>& values) {
  return to_numpy(without_gil([&] { return agglo::min_over_ancestors(span(parent), span(values)); }));
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

nb::object select_kept_nodes(const In<std::int32_t>& parent, const In<double>& level,
                             const In<double>& weight, const In<double>& price,
                             const In<std::uint8_t>& allowed) {
  return to_numpy(without_gil([&] {
    return agglo::select_kept_nodes(span(parent), {span(level), span(weight), span(price), span(allowed)});
  }));
}

}  // namespace

void bind_cut(nb::module_& module) {
  bind_costs<float>(module);
  bind_costs<double>(module);
  bind_costs<agglo::Half>(module);
  module.def("select_cheapest_nodes", &select_cheapest_nodes, "parent"_a, "costs"_a);
  module.def("compute_price_path", &compute_price_path, "parent"_a, "costs"_a, "leaves"_a);
  module.def("compute_node_modularity", &compute_node_modularity, "parent"_a, "size"_a, "indptr"_a,
             "indices"_a, "weights"_a, "leaf_of"_a, "reference"_a, "scale"_a, "point_weights"_a);
  module.def("compute_modularity_path", &compute_modularity_path, "parent"_a, "leaves"_a, "meets"_a,
             "volume"_a, "given"_a);
  module.def("min_over_ancestors", &min_over_ancestors, "parent"_a, "values"_a);
  module.def("find_possible_counts", &find_possible_counts, "parent"_a, "leaves"_a);
  module.def("select_k_nodes", &select_k_nodes, "parent"_a, "costs"_a, "leaves"_a, "clusters"_a, "lam"_a);
  module.def("select_kept_nodes", &select_kept_nodes, "parent"_a, "level"_a, "weight"_a, "price"_a,
             "allowed"_a);
}

}  // namespace agglo::python
