#include <nanobind/stl/string.h>

#include "python.hpp"
#include "tree/price_path.hpp"
#include "tree/tree.hpp"

namespace agglo::python {
namespace {

agglo::TreeView view(const In<std::int32_t>& parent, const In<double>& height, const In<std::int32_t>& size,
                     const In<std::int32_t>& round) {
  return {span(parent), span(height), span(size), span(round)};
}

std::string tree_violation(const In<std::int32_t>& parent, const In<double>& height,
                           const In<std::int32_t>& size, const In<std::int32_t>& round,
                           const In<std::int64_t>& before, const In<std::int64_t>& after) {
  nb::gil_scoped_release release;
  return agglo::violation(view(parent, height, size, round), span(before), span(after));
}

nb::object tree_settled(const In<std::int32_t>& parent, const In<double>& height) {
  std::vector<double> heights;
  {
    nb::gil_scoped_release release;
    heights = agglo::settled(span(parent), span(height));
  }
  return out(std::move(heights));
}

nb::object tree_partition(const In<std::int32_t>& parent, const In<bool>& joined, std::int64_t leaves) {
  std::vector<std::int64_t> labels;
  {
    nb::gil_scoped_release release;
    labels = agglo::partition(span(parent), span(joined), leaves);
  }
  return out(std::move(labels));
}

nb::object tree_nodes(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                      const In<std::int64_t>& labels, std::int64_t clusters) {
  std::vector<std::int32_t> nodes;
  {
    nb::gil_scoped_release release;
    nodes = agglo::nodes_of(span(parent), span(size), span(labels), clusters);
  }
  return out(std::move(nodes));
}

nb::tuple tree_below(const In<std::int32_t>& parent, const In<std::int32_t>& size, std::int64_t leaves) {
  agglo::Below found;
  {
    nb::gil_scoped_release release;
    found = agglo::below(span(parent), span(size), leaves);
  }
  return nb::make_tuple(read_only_out(std::move(found.indptr)), read_only_out(std::move(found.children)),
                        read_only_out(std::move(found.start)), read_only_out(std::move(found.order)));
}

nb::object tree_linkage(const In<std::int32_t>& parent, const In<double>& height,
                        const In<std::int32_t>& size, const In<std::int32_t>& round, std::int64_t leaves) {
  std::vector<double> rows;
  {
    nb::gil_scoped_release release;
    rows = agglo::linkage(view(parent, height, size, round), leaves);
  }
  return out(std::move(rows));
}

template <class T>
nb::object sums_below(const In<std::int32_t>& parent, const In<T>& values) {
  std::vector<T> sums;
  {
    nb::gil_scoped_release release;
    sums = agglo::sums_below(span(parent), span(values));
  }
  return out(std::move(sums));
}

}  // namespace

void bind_tree(nb::module_& module) {
  module.def("tree_violation", &tree_violation, "parent"_a, "height"_a, "size"_a, "round"_a, "before"_a,
             "after"_a);
  module.def("tree_settled", &tree_settled, "parent"_a, "height"_a);
  module.def("tree_partition", &tree_partition, "parent"_a, "joined"_a, "leaves"_a);
  module.def("tree_nodes", &tree_nodes, "parent"_a, "size"_a, "labels"_a, "clusters"_a);
  module.def("tree_below", &tree_below, "parent"_a, "size"_a, "leaves"_a);
  module.def("tree_linkage", &tree_linkage, "parent"_a, "height"_a, "size"_a, "round"_a, "leaves"_a);
  module.def("sums_below", &sums_below<std::int64_t>, "parent"_a, "values"_a.noconvert());
  module.def("sums_below", &sums_below<double>, "parent"_a, "values"_a.noconvert());
}

}  // namespace agglo::python
