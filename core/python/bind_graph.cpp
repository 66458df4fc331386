#include <nanobind/stl/string.h>

#include "neighbors/graph.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::tuple columns(agglo::Graph&& graph) {
  return nb::make_tuple(read_only_out(std::move(graph.indptr)), read_only_out(std::move(graph.indices)),
                        read_only_out(std::move(graph.weights)));
}

nb::tuple grouped(std::int64_t n, const In<std::int32_t>& sources, const In<std::int32_t>& targets,
                  const In<float>& weights) {
  agglo::Graph rows;
  {
    nb::gil_scoped_release release;
    rows = agglo::edges_to_csr(n, span(sources), span(targets), span(weights));
  }
  return columns(std::move(rows));
}

nb::tuple united(const In<std::int64_t>& indptr, const In<std::int32_t>& targets, const In<float>& weights,
                 bool similarity, int threads) {
  agglo::Graph graph;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    graph = agglo::symmetrize({span(indptr), span(targets), span(weights)}, kind_of(similarity), pool);
  }
  return columns(std::move(graph));
}

std::string violation(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                      const In<float>& weights, int threads) {
  nb::gil_scoped_release release;
  agglo::ThreadPool pool(threads);
  return agglo::violation(view(indptr, indices, weights), pool);
}

float beyond(const In<float>& weights, double bound, bool up, double share) {
  nb::gil_scoped_release release;
  return agglo::quantile_beyond(span(weights), bound, up, share);
}

}  // namespace

void bind_graph(nb::module_& module) {
  module.def("grouped", &grouped, "n"_a, "sources"_a, "targets"_a, "weights"_a);
  module.def("united", &united, "indptr"_a, "targets"_a, "weights"_a, "similarity"_a, "threads"_a);
  module.def("beyond", &beyond, "weights"_a, "bound"_a, "up"_a, "share"_a);
  module.def("violation", &violation, "indptr"_a, "indices"_a, "weights"_a, "threads"_a);
}

}  // namespace agglo::python
