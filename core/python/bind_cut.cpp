// Bindings of the functions that select optimal cuts of a tree, and of condensed trees.
// The functions compute node costs, the paths of DP-means and modularity, and cuts into exactly k clusters.
#include "python.hpp"
#include "tree/condense.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/exact_k.hpp"
#include "tree/modularity.hpp"
#include "tree/node_costs.hpp"

namespace agglo {

static auto to_tuple(NodeCosts&& found) {
  return std::tuple(std::move(found.costs), std::move(found.centers));
}
static auto to_tuple(PricePath&& path) {
  return std::tuple(std::move(path.critical), std::move(path.lams), std::move(path.costs),
                    std::move(path.clusters));
}
static auto to_tuple(NodeModularity&& nodes) {
  return std::tuple(std::move(nodes.meets), std::move(nodes.volume));
}
static auto to_tuple(ParametricPath&& path) {
  return std::tuple(std::move(path.critical), std::move(path.lams), std::move(path.costs),
                    std::move(path.prices), std::move(path.clusters));
}

}  // namespace agglo

namespace agglo::python {

template <>
inline constexpr std::array<std::string_view, 2> names<CenterKind>{"means", "points"};

}  // namespace agglo::python

namespace nanobind::detail {

template <>
struct type_caster<agglo::EdgeWeights>
    : tuple_argument<&to_view<agglo::EdgeWeights, double, double, std::span<const double>>> {};
template <>
struct type_caster<agglo::CondenseCosts>
    : tuple_argument<&to_view<agglo::CondenseCosts, std::span<const double>, std::span<const double>,
                              std::span<const double>, std::span<const std::uint8_t>>> {};
template <>
struct type_caster<agglo::CenterKind> : enum_caster<agglo::CenterKind> {};

}  // namespace nanobind::detail

namespace agglo::python {

namespace {

// Returns the possible numbers of clusters as ranges: the first and the last number of each range.
auto find_possible_counts(std::span<const std::int32_t> parent, std::int64_t leaves) {
  std::vector<std::int64_t> first, last;
  for (const CountRange& range : agglo::find_possible_counts(parent, leaves)) {
    first.push_back(range.first);
    last.push_back(range.last);
  }
  return std::tuple(std::move(first), std::move(last));
}

}  // namespace

void bind_cut(nb::module_& module) {
  module.def("compute_node_costs", &compute_node_costs, "points"_a.noconvert(), "parent"_a, "size"_a,
             "centers"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("select_cheapest_nodes", &select_cheapest_nodes, "parent"_a, "costs"_a, ReleaseGil());
  module.def("compute_price_path", &compute_price_path, "parent"_a, "costs"_a, "leaves"_a, ReleaseGil());
  module.def("compute_node_modularity", &compute_node_modularity, "parent"_a, "size"_a, "graph"_a,
             "leaf_of"_a, "weights"_a, ReleaseGil());
  module.def("compute_modularity_path", &compute_modularity_path, "parent"_a, "leaves"_a, "meets"_a,
             "volume"_a, "given"_a, ReleaseGil());
  module.def("min_over_ancestors", &min_over_ancestors, "parent"_a, "values"_a, ReleaseGil());
  module.def("find_possible_counts", &find_possible_counts, "parent"_a, "leaves"_a, ReleaseGil());
  module.def("select_k_nodes", &select_k_nodes, "parent"_a, "costs"_a, "leaves"_a, "clusters"_a, "lam"_a,
             "progress"_a.none(), ReleaseGil());
  module.def("select_kept_nodes", &select_kept_nodes, "parent"_a, "costs"_a, ReleaseGil());
}

}  // namespace agglo::python
