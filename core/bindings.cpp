// The one file that knows Python: arrays in as spans, vectors out as arrays without a copy, the interpreter
// released while the core works. Arguments are checked by the Python side; the core trusts them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <span>
#include <utility>

#include "graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

template <class T>
nb::object out(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// Calls a Python progress function, and looks for Ctrl-C, at most every 50 ms.
agglo::Report reporter(const nb::object& progress) {
  using clock = std::chrono::steady_clock;
  return [&progress, last = clock::time_point{}](std::int64_t done, std::int64_t total) mutable {
    const auto now = clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(done, total);
  };
}

agglo::Kind kind_of(bool similarity) {
  return similarity ? agglo::Kind::similarity : agglo::Kind::distance;
}

agglo::GraphView view(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<float>& weights) {
  return {span(indptr), span(indices), span(weights)};
}

nb::tuple united(std::int64_t n, const In<std::int32_t>& sources, const In<std::int32_t>& targets,
                 const In<float>& weights, bool similarity, int threads) {
  agglo::Graph graph;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    graph = agglo::united(n, span(sources), span(targets), span(weights), kind_of(similarity), team);
  }
  return nb::make_tuple(out(std::move(graph.indptr)), out(std::move(graph.indices)), out(std::move(graph.weights)));
}

std::string violation(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<float>& weights,
                      int threads) {
  nb::gil_scoped_release release;
  agglo::Team team(threads);
  return agglo::violation(view(indptr, indices, weights), team);
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The native core of agglo. Private: use the functions of the package.";
  module.def("united", &united, "n"_a, "sources"_a, "targets"_a, "weights"_a, "similarity"_a, "threads"_a);
  module.def("violation", &violation, "indptr"_a, "indices"_a, "weights"_a, "threads"_a);
}
