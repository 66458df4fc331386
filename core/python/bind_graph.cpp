// Bindings of neighbors/graph: building and checking neighbour graphs.
#include <nanobind/stl/string.h>

#include "neighbors/graph.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::tuple to_columns(agglo::Graph graph) {
  return nb::make_tuple(to_read_only(std::move(graph.indptr)), to_read_only(std::move(graph.indices)),
                        to_read_only(std::move(graph.weights)));
}

nb::tuple edges_to_csr(std::int64_t n, const In<std::int32_t>& sources, const In<std::int32_t>& targets,
                       const In<float>& weights) {
  return to_columns(
      without_gil([&] { return agglo::edges_to_csr(n, span(sources), span(targets), span(weights)); }));
}

nb::tuple symmetrize(const In<std::int64_t>& indptr, const In<std::int32_t>& targets,
                     const In<float>& weights, bool similarity, int n_threads) {
  return to_columns(without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::symmetrize({span(indptr), span(targets), span(weights)}, to_kind(similarity), pool);
  }));
}

std::string find_graph_violation(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                 const In<float>& weights, int n_threads) {
  return without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::violation(to_graph(indptr, indices, weights), pool);
  });
}

float weight_quantile(const In<float>& weights, double bound, bool above, double share) {
  return without_gil([&] { return agglo::quantile_beyond(span(weights), bound, above, share); });
}

}  // namespace

void bind_graph(nb::module_& module) {
  module.def("edges_to_csr", &edges_to_csr, "n"_a, "sources"_a, "targets"_a, "weights"_a);
  module.def("symmetrize", &symmetrize, "indptr"_a, "targets"_a, "weights"_a, "similarity"_a, "n_threads"_a);
  module.def("weight_quantile", &weight_quantile, "weights"_a, "bound"_a, "above"_a, "share"_a);
  module.def("find_graph_violation", &find_graph_violation, "indptr"_a, "indices"_a, "weights"_a,
             "n_threads"_a);
}

}  // namespace agglo::python
