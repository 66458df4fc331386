// Bindings of tree/tree and evaluation/purity: operations on cluster trees, and quality measures.
#include <nanobind/stl/string.h>

#include "evaluation/purity.hpp"
#include "python.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/tree.hpp"

namespace agglo {

static auto to_tuple(Descendants&& found) {
  using python::ReadOnly;
  return std::tuple(ReadOnly{std::move(found.indptr)}, ReadOnly{std::move(found.children)},
                    ReadOnly{std::move(found.start)}, ReadOnly{std::move(found.order)});
}

}  // namespace agglo

namespace nanobind::detail {

template <>
struct type_caster<agglo::TreeView>
    : tuple_argument<&to_view<agglo::TreeView, std::span<const std::int32_t>, std::span<const double>,
                              std::span<const std::int32_t>, std::span<const std::int32_t>>> {};

}  // namespace nanobind::detail

namespace agglo::python {
namespace {

template <class T>
double sum_within_clusters(const Points<T>& points, std::span<const std::int64_t> order,
                           std::span<const std::int64_t> bounds) {
  return agglo::sum_within_clusters(std::span(points.data, points.n * points.d), points.d, order, bounds);
}

}  // namespace

// A tree is a tuple (parent, height, size, round).
void bind_tree(nb::module_& module) {
  module.def("find_tree_violation", &find_violation, "tree"_a, "before"_a, "after"_a, ReleaseGil());
  module.def("make_heights_monotone", &make_heights_monotone, "parent"_a, "height"_a, ReleaseGil());
  module.def("label_leaves", &label_leaves, "parent"_a, "merged"_a, "leaves"_a, ReleaseGil());
  module.def("find_cluster_nodes", &find_cluster_nodes, "parent"_a, "size"_a, "labels"_a, "clusters"_a,
             ReleaseGil());
  module.def("index_descendants", &index_descendants, "parent"_a, "size"_a, "leaves"_a, ReleaseGil());
  module.def("to_scipy_linkage", &to_scipy_linkage, "tree"_a, "leaves"_a, ReleaseGil());
  module.def("sum_descendants", &sum_descendants<double>, "parent"_a, "values"_a.noconvert(), ReleaseGil());
  module.def("sum_descendants", &sum_descendants<std::int64_t>, "parent"_a, "values"_a.noconvert(),
             ReleaseGil());
  module.def("dendrogram_purity", &dendrogram_purity, "parent"_a, "size"_a, "classes"_a, "n_classes"_a,
             ReleaseGil());
  module.def("count_pairs_by_lca", &count_pairs_by_lca, "parent"_a, "size"_a, "classes"_a, "n_classes"_a,
             ReleaseGil());
  module.def("sum_within_clusters", &sum_within_clusters<float>, "points"_a, "order"_a, "bounds"_a,
             ReleaseGil());
  module.def("sum_within_clusters", &sum_within_clusters<double>, "points"_a, "order"_a, "bounds"_a,
             ReleaseGil());
}

}  // namespace agglo::python
