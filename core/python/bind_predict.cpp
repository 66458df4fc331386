#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "predict.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::tuple attached(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                   const In<std::int32_t>& round, std::int64_t leaves, const In<std::int64_t>& indptr,
                   const In<std::int32_t>& targets, const In<float>& weights, const In<double>& leaf_weights,
                   const In<float>& limits, bool similarity, const std::string& linkage,
                   std::optional<double> missing, int threads, const nb::object& progress) {
  const agglo::Linkage chosen = linkage == "average"  ? agglo::Linkage::average
                                : linkage == "single" ? agglo::Linkage::single
                                                      : agglo::Linkage::complete;
  agglo::Attached found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::attached(
        span(parent), span(size), span(round), leaves, {span(indptr), span(targets), span(weights)},
        {kind_of(similarity), chosen, missing, span(limits), span(leaf_weights)}, team, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.node)), out(std::move(found.round)), out(std::move(found.value)));
}

nb::tuple closest(const In<std::int64_t>& indptr, const In<std::int32_t>& targets, const In<float>& weights,
                  std::int64_t k, bool similarity, int threads) {
  agglo::Neighbors found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::closest({span(indptr), span(targets), span(weights)}, k, kind_of(similarity), team);
  }
  return nb::make_tuple(out(std::move(found.indices)), out(std::move(found.values)));
}

}  // namespace

void bind_predict(nb::module_& module) {
  module.def("attached", &attached, "parent"_a, "size"_a, "round"_a, "leaves"_a, "indptr"_a, "targets"_a,
             "weights"_a, "leaf_weights"_a, "limits"_a, "similarity"_a, "linkage"_a, "missing"_a.none(),
             "threads"_a, "progress"_a.none());
  module.def("closest", &closest, "indptr"_a, "targets"_a, "weights"_a, "k"_a, "similarity"_a, "threads"_a);
}

}  // namespace agglo::python
