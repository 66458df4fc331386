#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python.hpp"
#include "tree/attach.hpp"
#include "vectors.hpp"

namespace agglo::python {
namespace {

nb::tuple columns(agglo::Attached found) {
  return nb::make_tuple(out(std::move(found.node)), out(std::move(found.round)), out(std::move(found.value)));
}

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
    agglo::ThreadPool pool(threads);
    found = agglo::attached(
        span(parent), span(size), span(round), leaves, {span(indptr), span(targets), span(weights)},
        {kind_of(similarity), chosen, missing, span(limits), span(leaf_weights)}, pool, reporter(progress));
  }
  return columns(std::move(found));
}

// `means` is a copy for this call, which is written to.
nb::tuple node_moments(const In<std::int32_t>& parent, const Means& means, const In<double>& weights) {
  agglo::Vectors vectors = vectors_of(means);
  vectors.weights = span(weights);
  agglo::NodeMoments found;
  {
    nb::gil_scoped_release release;
    found = agglo::node_moments(span(parent), static_cast<std::int64_t>(means.shape(0)), vectors);
  }
  return nb::make_tuple(out(std::move(found.weight)), out(std::move(found.square)),
                        out(std::move(found.spread)), out(std::move(found.mean)));
}

nb::tuple attached_by_means(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                            const In<std::int32_t>& round, std::int64_t leaves,
                            const In<std::int64_t>& indptr, const In<std::int32_t>& targets,
                            const In<float>& weights, const Rows<float>& points, const In<double>& weight,
                            const In<double>& square, const In<double>& spread, const In<float>& mean,
                            const In<float>& limits, const std::string& linkage, const std::string& metric,
                            int threads, const nb::object& progress) {
  agglo::ByMeans means;
  means.linkage = vector_linkage_of(linkage);
  means.metric = metric_of(metric);
  means.d = static_cast<std::int64_t>(points.shape(1));
  means.points = {points.data(), points.size()};
  means.weight = span(weight);
  means.square = span(square);
  means.spread = span(spread);
  means.mean = span(mean);
  means.limits = span(limits);
  agglo::Attached found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::attached(span(parent), span(size), span(round), leaves,
                            {span(indptr), span(targets), span(weights)}, means, pool, reporter(progress));
  }
  return columns(std::move(found));
}

}  // namespace

void bind_predict(nb::module_& module) {
  module.def("attached", &attached, "parent"_a, "size"_a, "round"_a, "leaves"_a, "indptr"_a, "targets"_a,
             "weights"_a, "leaf_weights"_a, "limits"_a, "similarity"_a, "linkage"_a, "missing"_a.none(),
             "threads"_a, "progress"_a.none());
  module.def("node_moments", &node_moments, "parent"_a, "means"_a.noconvert(), "weights"_a);
  module.def("attached_by_means", &attached_by_means, "parent"_a, "size"_a, "round"_a, "leaves"_a, "indptr"_a,
             "targets"_a, "weights"_a, "points"_a, "weight"_a, "square"_a, "spread"_a, "mean"_a, "limits"_a,
             "linkage"_a, "metric"_a, "threads"_a, "progress"_a.none());
}

}  // namespace agglo::python
