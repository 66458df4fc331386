// Bindings of neighbors/graph: building and checking neighbour graphs.
#include <nanobind/stl/string.h>

#include "neighbors/graph.hpp"
#include "python.hpp"

namespace agglo::python {

void bind_graph(nb::module_& module) {
  module.def("edges_to_csr", &edges_to_csr, "n"_a, "sources"_a, "targets"_a, "weights"_a, ReleaseGil());
  module.def("symmetrize", &symmetrize, "edges"_a, "kind"_a, "n_threads"_a, ReleaseGil());
  module.def("weight_quantile", &weight_quantile, "weights"_a, "bound"_a, "above"_a, "share"_a, ReleaseGil());
  module.def("find_graph_violation", &find_graph_violation, "graph"_a, "n_threads"_a, ReleaseGil());
}

}  // namespace agglo::python
