// What the bindings share: arrays in as spans, vectors out as arrays without a copy, progress and Ctrl-C.
//
// The files of this folder are the only ones that know Python, one for each stage. They release the
// interpreter while the core works. Arguments are checked by the Python side; the core trusts them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"
#include "points/space.hpp"

namespace agglo::python {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

// A vector as an array of `Element`, the type of its numbers or a const one.
template <class Element, class Values>
nb::object array_of(Values&& values) {
  using Owned = std::remove_cvref_t<Values>;
  auto* owned = new Owned(std::forward<Values>(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Element, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

template <class Values>
nb::object out(Values&& values) {
  return array_of<typename std::remove_cvref_t<Values>::value_type>(std::forward<Values>(values));
}

// An array that Python cannot make writable, for the columns of graphs and trees: the core trusts them later.
template <class Values>
nb::object read_only_out(Values&& values) {
  return array_of<const typename std::remove_cvref_t<Values>::value_type>(std::forward<Values>(values));
}

// Calls a Python progress function, and looks for Ctrl-C, at most every 50 ms.
inline agglo::Report reporter(const nb::object& progress) {
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

// Calls `search` with a pool and a report, the interpreter released.
template <class Search>
auto released(int threads, const nb::object& progress, const Search& search) {
  nb::gil_scoped_release release;
  agglo::ThreadPool pool(threads);
  return search(pool, reporter(progress));
}

inline nb::tuple lists(agglo::Neighbors neighbors) {
  return nb::make_tuple(out(std::move(neighbors.indices)), out(std::move(neighbors.values)));
}

// Of capsules that scipy.linalg.cython_blas exports, named by their C signatures.
inline agglo::Gemm<float>* sgemm_of(const nb::capsule& sgemm) {
  return reinterpret_cast<agglo::Gemm<float>*>(sgemm.data());
}
inline agglo::Blas blas_of(const nb::capsule& sgemm, const nb::capsule& dgemm) {
  return {sgemm_of(sgemm), reinterpret_cast<agglo::Gemm<double>*>(dgemm.data())};
}

inline agglo::Kind kind_of(bool similarity) {
  return similarity ? agglo::Kind::similarity : agglo::Kind::distance;
}

inline agglo::GraphView view(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                             const In<float>& weights) {
  return {span(indptr), span(indices), span(weights)};
}

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Half precision comes as the integers of its bits, for which nanobind has a type.
template <class T>
using Bits = std::conditional_t<std::is_same_v<T, agglo::Half>, std::uint16_t, T>;

template <class T>
agglo::Points<T> points_of(const Rows<Bits<T>>& X) {
  return {reinterpret_cast<const T*>(X.data()), static_cast<std::int64_t>(X.shape(0)),
          static_cast<std::int64_t>(X.shape(1))};
}

inline agglo::Metric metric_of(const std::string& name) {
  if (name == "dot") return agglo::Metric::dot;
  if (name == "cosine") return agglo::Metric::cosine;
  if (name == "sqeuclidean") return agglo::Metric::sqeuclidean;
  if (name == "euclidean") return agglo::Metric::euclidean;
  throw std::invalid_argument("unknown metric " + name);
}

void bind_numerics(nb::module_& module);
void bind_folding(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_neighbors(nb::module_& module);
void bind_queries(nb::module_& module);
void bind_candidates(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_rounds(nb::module_& module);
void bind_predict(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_cut(nb::module_& module);
void bind_metrics(nb::module_& module);
void bind_dpmeans(nb::module_& module);
void bind_baselines(nb::module_& module);

}  // namespace agglo::python
