// Bindings of tree/tree and tree/purity: operations on cluster trees, and quality measures.
#include <nanobind/stl/string.h>

#include "python.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/purity.hpp"
#include "tree/tree.hpp"

namespace agglo::python {
namespace {

std::string find_tree_violation(const In<std::int32_t>& parent, const In<double>& height,
                                const In<std::int32_t>& size, const In<std::int32_t>& round,
                                const In<std::int64_t>& before, const In<std::int64_t>& after) {
  return without_gil([&] {
    return agglo::find_violation({span(parent), span(height), span(size), span(round)}, span(before),
                                 span(after));
  });
}

nb::object make_heights_monotone(const In<std::int32_t>& parent, const In<double>& height) {
  return to_numpy(without_gil([&] { return agglo::make_heights_monotone(span(parent), span(height)); }));
}

nb::object label_leaves(const In<std::int32_t>& parent, const In<bool>& merged, std::int64_t leaves) {
  return to_numpy(without_gil([&] { return agglo::label_leaves(span(parent), span(merged), leaves); }));
}

nb::object find_cluster_nodes(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                              const In<std::int64_t>& labels, std::int64_t clusters) {
  return to_numpy(without_gil(
      [&] { return agglo::find_cluster_nodes(span(parent), span(size), span(labels), clusters); }));
}

nb::tuple index_descendants(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                            std::int64_t leaves) {
  auto found = without_gil([&] { return agglo::index_descendants(span(parent), span(size), leaves); });
  return nb::make_tuple(to_read_only(std::move(found.indptr)), to_read_only(std::move(found.children)),
                        to_read_only(std::move(found.start)), to_read_only(std::move(found.order)));
}

nb::object to_scipy_linkage(const In<std::int32_t>& parent, const In<double>& height,
                            const In<std::int32_t>& size, const In<std::int32_t>& round,
                            std::int64_t leaves) {
  return to_numpy(without_gil([&] {
    return agglo::to_scipy_linkage({span(parent), span(height), span(size), span(round)}, leaves);
  }));
}

template <class T>
nb::object sum_descendants(const In<std::int32_t>& parent, const In<T>& values) {
  return to_numpy(without_gil([&] { return agglo::sum_descendants(span(parent), span(values)); }));
}

double dendrogram_purity(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                         const In<std::int32_t>& classes, std::int64_t n_classes) {
  return without_gil(
      [&] { return agglo::dendrogram_purity(span(parent), span(size), span(classes), n_classes); });
}

nb::object count_pairs_by_lca(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                              const In<std::int32_t>& classes, std::int64_t n_classes) {
  return to_numpy(without_gil(
      [&] { return agglo::count_pairs_by_lca(span(parent), span(size), span(classes), n_classes); }));
}

template <class T>
double sum_within_clusters(const Rows<T>& points, const In<std::int64_t>& order,
                           const In<std::int64_t>& bounds) {
  return without_gil([&] {
    return agglo::sum_within_clusters(flatten(points), static_cast<std::int64_t>(points.shape(1)),
                                      span(order), span(bounds));
  });
}

}  // namespace

void bind_tree(nb::module_& module) {
  module.def("find_tree_violation", &find_tree_violation, "parent"_a, "height"_a, "size"_a, "round"_a,
             "before"_a, "after"_a);
  module.def("make_heights_monotone", &make_heights_monotone, "parent"_a, "height"_a);
  module.def("label_leaves", &label_leaves, "parent"_a, "merged"_a, "leaves"_a);
  module.def("find_cluster_nodes", &find_cluster_nodes, "parent"_a, "size"_a, "labels"_a, "clusters"_a);
  module.def("index_descendants", &index_descendants, "parent"_a, "size"_a, "leaves"_a);
  module.def("to_scipy_linkage", &to_scipy_linkage, "parent"_a, "height"_a, "size"_a, "round"_a, "leaves"_a);
  module.def("sum_descendants", &sum_descendants<std::int64_t>, "parent"_a, "values"_a.noconvert());
  module.def("sum_descendants", &sum_descendants<double>, "parent"_a, "values"_a.noconvert());
  module.def("dendrogram_purity", &dendrogram_purity, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("count_pairs_by_lca", &count_pairs_by_lca, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("sum_within_clusters", &sum_within_clusters<float>, "points"_a, "order"_a, "bounds"_a);
  module.def("sum_within_clusters", &sum_within_clusters<double>, "points"_a, "order"_a, "bounds"_a);
}

}  // namespace agglo::python
