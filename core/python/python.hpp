// Conversions between NumPy and the core, and calls that release the GIL.
//
// Only the files of this folder include Python headers.
// Python code validates all arguments before it calls the core, which does not check them again.
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
#include "neighbors/recall.hpp"
#include "points/space.hpp"
#include "rounds/moments.hpp"
#include "rounds/rounds.hpp"

namespace agglo::python {

namespace nb = nanobind;
using namespace nb::literals;

// ---- arguments ----

// A contiguous one-dimensional array.
template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A contiguous two-dimensional array.
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A contiguous two-dimensional array that the core writes to.
template <class T>
using WritableRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The element type in Python for arrays of T. float16 arrays are passed as views of type uint16.
template <class T>
using Bits = std::conditional_t<std::is_same_v<T, agglo::Half>, std::uint16_t, T>;

template <class T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

template <class T>
std::span<const T> flatten(const Rows<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
agglo::Points<T> to_points(const Rows<Bits<T>>& X) {
  return {reinterpret_cast<const T*>(X.data()), static_cast<std::int64_t>(X.shape(0)),
          static_cast<std::int64_t>(X.shape(1))};
}

// A contiguous two-dimensional array of any number type that points may have.
using AnyRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline agglo::AnyPoints to_points(const AnyRows& X) {
  const auto type = [&] {
    if (X.dtype() == nb::dtype<float>()) return NumberType::float32;
    if (X.dtype() == nb::dtype<double>()) return NumberType::float64;
    if (X.dtype() == nb::dtype<Bits<Half>>()) return NumberType::float16;
    if (X.dtype() == nb::dtype<std::int8_t>()) return NumberType::int8;
    if (X.dtype() == nb::dtype<std::uint8_t>()) return NumberType::uint8;
    throw nb::type_error("points have a number type that the core does not support");
  }();
  return {X.data(), type, static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1))};
}

inline agglo::GraphView to_graph(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                 const In<float>& weights) {
  return {span(indptr), span(indices), span(weights)};
}

inline agglo::Vectors to_vectors(const WritableRows<float>& means) {
  agglo::Vectors vectors;
  vectors.means = {means.data(), means.size()};
  vectors.d = static_cast<std::int64_t>(means.shape(1));
  return vectors;
}

inline agglo::Kind to_kind(bool similarity) {
  return similarity ? agglo::Kind::similarity : agglo::Kind::distance;
}

inline agglo::Metric to_metric(const std::string& name) {
  if (name == "dot") return agglo::Metric::dot;
  if (name == "cosine") return agglo::Metric::cosine;
  if (name == "sqeuclidean") return agglo::Metric::sqeuclidean;
  if (name == "euclidean") return agglo::Metric::euclidean;
  throw std::invalid_argument("unknown metric " + name);
}

inline agglo::Linkage to_linkage(const std::string& name) {
  if (name == "average") return agglo::Linkage::average;
  if (name == "single") return agglo::Linkage::single;
  if (name == "complete") return agglo::Linkage::complete;
  throw std::invalid_argument("unknown linkage " + name);
}

inline agglo::VectorLinkage to_vector_linkage(const std::string& name) {
  if (name == "exact-average") return agglo::VectorLinkage::average;
  if (name == "centroid") return agglo::VectorLinkage::centroid;
  if (name == "ward") return agglo::VectorLinkage::ward;
  throw std::invalid_argument("unknown linkage " + name);
}

// BLAS functions are passed as capsules from scipy.linalg.cython_blas.
inline agglo::Gemm<float>* to_sgemm(const nb::capsule& sgemm) {
  return reinterpret_cast<agglo::Gemm<float>*>(sgemm.data());
}
inline agglo::Blas to_blas(const nb::capsule& sgemm, const nb::capsule& dgemm) {
  return {to_sgemm(sgemm), reinterpret_cast<agglo::Gemm<double>*>(dgemm.data())};
}

// ---- results ----

// Moves a vector into a NumPy array. `Element` is the element type of the vector, or its const version.
template <class Element, class Values>
nb::object move_to_numpy(Values&& values) {
  using Owned = std::remove_cvref_t<Values>;
  auto* owned = new Owned(std::forward<Values>(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Element, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

template <class Values>
nb::object to_numpy(Values&& values) {
  return move_to_numpy<typename std::remove_cvref_t<Values>::value_type>(std::forward<Values>(values));
}

// Returns a read-only array, which Python code cannot make writable.
// Columns of graphs and trees are read-only, because the core does not validate them again.
template <class Values>
nb::object to_read_only(Values&& values) {
  return move_to_numpy<const typename std::remove_cvref_t<Values>::value_type>(std::forward<Values>(values));
}

inline nb::tuple to_lists(Neighbors neighbors) {
  return nb::make_tuple(to_numpy(std::move(neighbors.indices)), to_numpy(std::move(neighbors.values)));
}

inline nb::tuple to_tuple(const Recall& recall) {
  return nb::make_tuple(recall.value, recall.error, recall.sample);
}

// ---- calls ----

// Returns a Report that checks for Ctrl-C and calls a Python progress function, at most every 50 ms.
inline agglo::Report make_report(const nb::object& progress) {
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

// Calls work() with the GIL released.
template <class Work>
auto without_gil(const Work& work) {
  nb::gil_scoped_release release;
  return work();
}

// Calls work(pool, report) with the GIL released. A work with the parameter pack `run` passes both on.
template <class Work>
auto without_gil(int n_threads, const nb::object& progress, const Work& work) {
  nb::gil_scoped_release release;
  agglo::ThreadPool pool(n_threads);
  const Report report = make_report(progress);
  return work(pool, report);
}

void bind_base(nb::module_& module);
void bind_points(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_neighbors(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_rounds(nb::module_& module);
void bind_attach(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_cut(nb::module_& module);
void bind_paper(nb::module_& module);

}  // namespace agglo::python
