// Conversions between Python objects and types of the core. Only files of this folder include Python headers.
//
// With these conversions, nanobind binds most functions of the core without wrappers.
// nanobind also writes the types of the functions into the stub file.
//  - A span, Points or AnyPoints reads a NumPy array without a copy. A vector is moved into a NumPy array.
//  - In Python, an enumeration is a string, and a ThreadPool is the number of its threads.
//  - In Python, a Report is a function or None.
//  - In Python, small views such as GraphView, and structs of results, are tuples of their members.
// Python code validates all arguments before it calls the core. The core does not check them again.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"
#include "neighbors/recall.hpp"
#include "points/space.hpp"

namespace agglo::python {

namespace nb = nanobind;
using namespace nb::literals;

// Releases the GIL while a bound function runs.
// Arguments are converted before the GIL is released. The result is converted after the function returns.
using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;

// ---- enumerations ----

// The names of the values of an enumeration, in the order of these values. Python code uses the names.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names{};
template <>
inline constexpr std::array<std::string_view, 2> names<Kind>{"similarity", "distance"};
template <>
inline constexpr std::array<std::string_view, 4> names<Metric>{"dot", "cosine", "sqeuclidean", "euclidean"};

// ---- results ----

// Values that become a read-only NumPy array. Python code cannot make this array writable.
// The arrays of graphs and trees are read-only, because the core does not validate them again.
template <class Values>
struct ReadOnly {
  Values values;
};
template <class Values>
ReadOnly(Values) -> ReadOnly<Values>;

// Moves a vector into a NumPy array. `Element` is the element type of the vector.
// If `Element` is const, the NumPy array is read-only.
template <class Element, class Values>
nb::handle move_to_numpy(Values&& values, nb::detail::cleanup_list* cleanup) {
  auto* owned = new Values(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Values*>(p); });
  using Array = nb::ndarray<nb::numpy, Element, nb::ndim<1>>;
  return nb::detail::make_caster<Array>::from_cpp(Array(owned->data(), {owned->size()}, owner),
                                                  nb::rv_policy::automatic, cleanup);
}

// ---- arguments ----

// A contiguous array that the core only reads.
template <class T, class... Shape>
using Input = nb::ndarray<const T, Shape..., nb::c_contig, nb::device::cpu>;

// The element type in Python for arrays of T. float16 arrays are passed as views of type uint16.
template <class T>
using Bits = std::conditional_t<std::is_same_v<T, Half>, std::uint16_t, T>;

inline AnyPoints to_points(const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& X) {
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

// Return the BLAS function that a capsule contains. The capsules come from scipy.linalg.cython_blas.
template <class Real>
Gemm<Real>* to_gemm(const nb::capsule& gemm) {
  return reinterpret_cast<Gemm<Real>*>(gemm.data());
}
inline Blas to_blas(nb::capsule sgemm, nb::capsule dgemm) {
  return {to_gemm<float>(sgemm), to_gemm<double>(dgemm)};
}

// Return a Report that checks for Ctrl-C and calls a Python progress function, at most once every 50 ms.
// If the user has pressed Ctrl-C, the Report throws an exception.
inline Report make_report(nb::handle progress) {
  using clock = std::chrono::steady_clock;
  return [progress, last = clock::time_point{}](std::int64_t done, std::int64_t total) mutable {
    const auto now = clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(done, total);
  };
}

void bind_base(nb::module_& module);
void bind_points(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_neighbors(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_rounds(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_cut(nb::module_& module);
void bind_paper(nb::module_& module);

}  // namespace agglo::python

namespace agglo {

// Return a tuple of the members of a result.
// If to_tuple has an overload for a result type, Python code receives such results as tuples.
inline auto to_tuple(Neighbors&& found) {
  return std::tuple(std::move(found.indices), std::move(found.values));
}
inline auto to_tuple(Recall&& recall) { return std::tuple(recall.value, recall.error, recall.sample); }
inline auto to_tuple(Graph&& graph) {
  return std::tuple(python::ReadOnly{std::move(graph.indptr)}, python::ReadOnly{std::move(graph.indices)},
                    python::ReadOnly{std::move(graph.weights)});
}

}  // namespace agglo

namespace nanobind::detail {

template <class T>
inline constexpr auto array_name =
    const_name("numpy.ndarray[dtype=") + dtype_traits<T>::name + const_name("]");

template <class Enum>
struct enum_caster {
  NB_TYPE_CASTER(Enum, const_name("str"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    const auto& names = agglo::python::names<Enum>;
    const auto is_source = [&](std::string_view name) {
      return PyUnicode_Check(source.ptr()) &&
             PyUnicode_CompareWithASCIIString(source.ptr(), name.data()) == 0;
    };
    const auto name = std::find_if(names.begin(), names.end(), is_source);
    value = static_cast<Enum>(name - names.begin());
    return name != names.end();
  }
};

template <>
struct type_caster<agglo::Kind> : enum_caster<agglo::Kind> {};
template <>
struct type_caster<agglo::Metric> : enum_caster<agglo::Metric> {};

// The base class of the casters of arguments. A caster converts a Python object to a T.
// During the call, the caster owns the data to which the T refers.
template <class T>
struct argument_caster {
  template <class>
  using Cast = T;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
};

template <class T, class Array>
struct array_caster : argument_caster<T> {
  bool from_python(handle source, auto flags, cleanup_list* cleanup) noexcept {
    return array.from_python(source, flags, cleanup);
  }

  type_caster<Array> array;
};

// A span reads the numbers of an array. The array may have any shape. The numbers are in C order.
template <class T>
struct type_caster<std::span<const T>> : array_caster<std::span<const T>, agglo::python::Input<T>> {
  static constexpr auto Name = array_name<T>;
  explicit operator std::span<const T>() { return {this->array.value.data(), this->array.value.size()}; }
};

template <class T>
struct type_caster<agglo::Points<T>>
    : array_caster<agglo::Points<T>, agglo::python::Input<agglo::python::Bits<T>, ndim<2>>> {
  static constexpr auto Name = array_name<agglo::python::Bits<T>>;
  explicit operator agglo::Points<T>() {
    const auto& X = this->array.value;
    return {reinterpret_cast<const T*>(X.data()), static_cast<std::int64_t>(X.shape(0)),
            static_cast<std::int64_t>(X.shape(1))};
  }
};

template <>
struct type_caster<agglo::AnyPoints>
    : array_caster<agglo::AnyPoints, ndarray<ro, ndim<2>, c_contig, device::cpu>> {
  static constexpr auto Name = const_name("numpy.typing.NDArray[typing.Any]");
  explicit operator agglo::AnyPoints() { return agglo::python::to_points(array.value); }
};

// The caster of an argument that the function `convert` builds from the members of a Python tuple.
template <auto convert>
struct tuple_argument;
template <class T, class... Members, T (*convert)(Members...)>
struct tuple_argument<convert> : argument_caster<T> {
  static constexpr auto Name = make_caster<std::tuple<Members...>>::Name;
  bool from_python(handle source, auto flags, cleanup_list* cleanup) noexcept {
    return members.from_python(source, flags, cleanup);
  }
  explicit operator T() { return std::apply(convert, members.operator std::tuple<Members...>()); }

  make_caster<std::tuple<Members...>> members;
};

// Return a view of the members of a Python tuple.
template <class View, class... Members>
View to_view(Members... members) {
  return {members...};
}

template <>
struct type_caster<agglo::GraphView>
    : tuple_argument<&to_view<agglo::GraphView, std::span<const std::int64_t>, std::span<const std::int32_t>,
                              std::span<const float>>> {};
template <>
struct type_caster<agglo::DirectedView>
    : tuple_argument<&to_view<agglo::DirectedView, std::span<const std::int64_t>,
                              std::span<const std::int32_t>, std::span<const float>>> {};

template <>
struct type_caster<agglo::Gemm<float>> : argument_caster<agglo::Gemm<float>*> {
  static constexpr auto Name = make_caster<capsule>::Name;
  bool from_python(handle source, auto flags, cleanup_list* cleanup) noexcept {
    return sgemm.from_python(source, flags, cleanup);
  }
  explicit operator agglo::Gemm<float>*() { return agglo::python::to_gemm<float>(sgemm.value); }

  type_caster<capsule> sgemm;
};
template <>
struct type_caster<agglo::Blas> : tuple_argument<&agglo::python::to_blas> {};

template <>
struct type_caster<agglo::ThreadPool> : argument_caster<agglo::ThreadPool&> {
  static constexpr auto Name = const_name("int");
  bool from_python(handle source, auto flags, cleanup_list* cleanup) noexcept {
    return n_threads.from_python(source, flags, cleanup);
  }
  explicit operator agglo::ThreadPool&() { return pool.emplace(n_threads.value); }

  type_caster<int> n_threads;
  std::optional<agglo::ThreadPool> pool;
};

template <>
struct type_caster<agglo::Report> {
  NB_TYPE_CASTER(agglo::Report, const_name("collections.abc.Callable[[int, int], None]"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value = agglo::python::make_report(source);
    return source.is_none() || PyCallable_Check(source.ptr());
  }
};

template <class T, class Allocator>
struct type_caster<std::vector<T, Allocator>> {
  static constexpr auto Name = array_name<T>;
  static handle from_cpp(std::vector<T, Allocator>&& values, rv_policy, cleanup_list* cleanup) noexcept {
    return agglo::python::move_to_numpy<T>(std::move(values), cleanup);
  }
};

template <class T, class Allocator>
struct type_caster<agglo::python::ReadOnly<std::vector<T, Allocator>>> {
  static constexpr auto Name = array_name<T>;
  static handle from_cpp(agglo::python::ReadOnly<std::vector<T, Allocator>>&& column, rv_policy,
                         cleanup_list* cleanup) noexcept {
    return agglo::python::move_to_numpy<const T>(std::move(column.values), cleanup);
  }
};

template <class Result>
  requires requires(Result&& result) { to_tuple(std::move(result)); }
struct type_caster<Result> {
  using Members = decltype(to_tuple(std::declval<Result>()));
  static constexpr auto Name = make_caster<Members>::Name;
  static handle from_cpp(Result&& result, rv_policy policy, cleanup_list* cleanup) noexcept {
    return make_caster<Members>::from_cpp(to_tuple(std::move(result)), policy, cleanup);
  }
};

}  // namespace nanobind::detail
