// Bindings of rounds/attach, which attaches new points to the clusters of a tree.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python.hpp"
#include "rounds/attach.hpp"

namespace agglo::python {
namespace {

nb::tuple to_columns(agglo::Attachments found) {
  return nb::make_tuple(to_numpy(std::move(found.node)), to_numpy(std::move(found.round)),
                        to_numpy(std::move(found.value)));
}

nb::tuple attach_points(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                        const In<std::int32_t>& round, std::int64_t leaves, const In<std::int64_t>& indptr,
                        const In<std::int32_t>& targets, const In<float>& weights,
                        const In<double>& leaf_weights, const In<float>& thresholds, bool similarity,
                        const std::string& linkage, std::optional<double> missing, int n_threads,
                        const nb::object& progress) {
  const agglo::EdgeAttachment rule{
      {to_kind(similarity), to_linkage(linkage), missing}, span(thresholds), span(leaf_weights)};
  return to_columns(without_gil(n_threads, progress, [&](auto&... run) {
    return agglo::attach_points({span(parent), span(size), span(round), leaves},
                                {span(indptr), span(targets), span(weights)}, rule, run...);
  }));
}

// The merges overwrite `means`, so the caller passes a copy.
nb::tuple compute_node_moments(const In<std::int32_t>& parent, const WritableRows<float>& means,
                               const In<double>& weights) {
  agglo::Vectors vectors = to_vectors(means);
  vectors.weights = span(weights);
  auto found = without_gil([&] {
    return agglo::compute_node_moments(span(parent), static_cast<std::int64_t>(means.shape(0)), vectors);
  });
  return nb::make_tuple(to_numpy(std::move(found.weight)), to_numpy(std::move(found.squared_norm)),
                        to_numpy(std::move(found.spread)), to_numpy(std::move(found.mean)));
}

nb::tuple attach_points_by_means(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                                 const In<std::int32_t>& round, std::int64_t leaves,
                                 const In<std::int64_t>& indptr, const In<std::int32_t>& targets,
                                 const In<float>& weights, const Rows<float>& points,
                                 const In<double>& weight, const In<double>& squared_norm,
                                 const In<double>& spread, const In<float>& mean, const In<float>& thresholds,
                                 const std::string& linkage, const std::string& metric, int n_threads,
                                 const nb::object& progress) {
  agglo::MeanAttachment rule;
  rule.linkage = to_vector_linkage(linkage);
  rule.metric = to_metric(metric);
  rule.d = static_cast<std::int64_t>(points.shape(1));
  rule.points = flatten(points);
  rule.weight = span(weight);
  rule.squared_norm = span(squared_norm);
  rule.spread = span(spread);
  rule.mean = span(mean);
  rule.thresholds = span(thresholds);
  return to_columns(without_gil(n_threads, progress, [&](auto&... run) {
    return agglo::attach_points({span(parent), span(size), span(round), leaves},
                                {span(indptr), span(targets), span(weights)}, rule, run...);
  }));
}

}  // namespace

void bind_attach(nb::module_& module) {
  module.def("attach_points", &attach_points, "parent"_a, "size"_a, "round"_a, "leaves"_a, "indptr"_a,
             "targets"_a, "weights"_a, nb::kw_only(), "leaf_weights"_a, "thresholds"_a, "similarity"_a,
             "linkage"_a, "missing"_a.none(), "n_threads"_a, "progress"_a.none());
  module.def("compute_node_moments", &compute_node_moments, "parent"_a, "means"_a.noconvert(), "weights"_a);
  module.def("attach_points_by_means", &attach_points_by_means, "parent"_a, "size"_a, "round"_a, "leaves"_a,
             "indptr"_a, "targets"_a, "weights"_a, nb::kw_only(), "points"_a, "weight"_a, "squared_norm"_a,
             "spread"_a, "mean"_a, "thresholds"_a, "linkage"_a, "metric"_a, "n_threads"_a,
             "progress"_a.none());
}

}  // namespace agglo::python
