// The one file that knows Python: arrays in as spans, vectors out as arrays without a copy, the interpreter
// released while the core works. Arguments are checked by the Python side; the core trusts them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <span>
#include <utility>

#include "cells.hpp"
#include "centers.hpp"
#include "costs.hpp"
#include "dpmeans.hpp"
#include "dpseeds.hpp"
#include "exactly.hpp"
#include "graph.hpp"
#include "metrics.hpp"
#include "neighbors.hpp"
#include "path.hpp"
#include "rounds.hpp"
#include "tree.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

template <class Values>
nb::object out(Values&& values) {
  using Owned = std::remove_cvref_t<Values>;
  auto* owned = new Owned(std::forward<Values>(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy, typename Owned::value_type, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
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

agglo::Kind kind_of(bool similarity) { return similarity ? agglo::Kind::similarity : agglo::Kind::distance; }

agglo::GraphView view(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                      const In<float>& weights) {
  return {span(indptr), span(indices), span(weights)};
}

nb::tuple columns(agglo::Graph&& graph) {
  return nb::make_tuple(out(std::move(graph.indptr)), out(std::move(graph.indices)),
                        out(std::move(graph.weights)));
}

nb::tuple grouped(std::int64_t n, const In<std::int32_t>& sources, const In<std::int32_t>& targets,
                  const In<float>& weights) {
  agglo::Graph rows;
  {
    nb::gil_scoped_release release;
    rows = agglo::grouped(n, span(sources), span(targets), span(weights));
  }
  return columns(std::move(rows));
}

nb::tuple united(const In<std::int64_t>& indptr, const In<std::int32_t>& targets, const In<float>& weights,
                 bool similarity, int threads) {
  agglo::Graph graph;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    graph = agglo::united({span(indptr), span(targets), span(weights)}, kind_of(similarity), team);
  }
  return columns(std::move(graph));
}

std::string violation(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                      const In<float>& weights, int threads) {
  nb::gil_scoped_release release;
  agglo::Team team(threads);
  return agglo::violation(view(indptr, indices, weights), team);
}

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
agglo::Points<T> points_of(const Rows<T>& X) {
  return {X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1))};
}

agglo::Metric metric_of(const std::string& name) {
  if (name == "dot") return agglo::Metric::dot;
  if (name == "cosine") return agglo::Metric::cosine;
  if (name == "sqeuclidean") return agglo::Metric::sqeuclidean;
  if (name == "euclidean") return agglo::Metric::euclidean;
  throw std::invalid_argument("unknown metric " + name);
}

// `sgemm` and `dgemm` are capsules that scipy.linalg.cython_blas exports, named by their C signatures.
template <class T>
nb::tuple nearest(const Rows<T>& X, std::int64_t k, const std::string& metric, const Rows<double>& basis,
                  const nb::capsule& sgemm, const nb::capsule& dgemm, int threads,
                  const nb::object& progress) {
  const agglo::Blas blas{reinterpret_cast<agglo::Gemm<float>*>(sgemm.data()),
                         reinterpret_cast<agglo::Gemm<double>*>(dgemm.data())};
  agglo::Neighbors neighbors;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    neighbors = agglo::nearest(points_of(X), k, metric_of(metric), {basis.data(), basis.size()}, blas, team,
                               reporter(progress));
  }
  return nb::make_tuple(out(std::move(neighbors.indices)), out(std::move(neighbors.values)));
}

template <class T>
nb::tuple nearly_nearest(const Rows<T>& X, std::int64_t k, const std::string& metric, double recall,
                         std::int64_t size, std::int64_t visits, std::int64_t joins, std::int64_t sample,
                         std::int64_t patience, std::uint64_t seed, const nb::capsule& sgemm,
                         const nb::capsule& dgemm, int threads, const nb::object& progress) {
  const agglo::Blas blas{reinterpret_cast<agglo::Gemm<float>*>(sgemm.data()),
                         reinterpret_cast<agglo::Gemm<double>*>(dgemm.data())};
  agglo::Approximation found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::nearly_nearest(points_of(X), k, metric_of(metric), recall, {size, visits, joins, 0},
                                  sample, patience, seed, blas, team, reporter(progress));
  }
  const agglo::Effort& effort = found.effort;
  return nb::make_tuple(out(std::move(found.neighbors.indices)), out(std::move(found.neighbors.values)),
                        nb::make_tuple(found.recall.value, found.recall.error, found.recall.sample),
                        nb::make_tuple(effort.size, effort.visits, effort.joins, effort.rounds));
}

template <class T>
nb::object all_pairs(const Rows<T>& X, const std::string& metric, int threads, const nb::object& progress) {
  std::vector<float> values;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    values = agglo::all_pairs(points_of(X), metric_of(metric), team, reporter(progress));
  }
  return out(std::move(values));
}

template <class T>
void bind_search(nb::module_& module) {
  module.def("nearest", &nearest<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "basis"_a, "sgemm"_a, "dgemm"_a,
             "threads"_a, "progress"_a.none());
  module.def("nearly_nearest", &nearly_nearest<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "recall"_a, "size"_a,
             "visits"_a, "joins"_a, "sample"_a, "patience"_a, "seed"_a, "sgemm"_a, "dgemm"_a, "threads"_a,
             "progress"_a.none());
  module.def("all_pairs", &all_pairs<T>, "X"_a.noconvert(), "metric"_a, "threads"_a, "progress"_a.none());
}

agglo::TreeView view(const In<std::int32_t>& parent, const In<double>& height, const In<std::int32_t>& size,
                     const In<std::int32_t>& round) {
  return {span(parent), span(height), span(size), span(round)};
}

std::string tree_violation(const In<std::int32_t>& parent, const In<double>& height,
                           const In<std::int32_t>& size, const In<std::int32_t>& round,
                           const In<std::int64_t>& before, const In<std::int64_t>& after) {
  nb::gil_scoped_release release;
  return agglo::violation(view(parent, height, size, round), span(before), span(after));
}

nb::object tree_settled(const In<std::int32_t>& parent, const In<double>& height) {
  std::vector<double> heights;
  {
    nb::gil_scoped_release release;
    heights = agglo::settled(span(parent), span(height));
  }
  return out(std::move(heights));
}

nb::object tree_partition(const In<std::int32_t>& parent, const In<bool>& joined, std::int64_t leaves) {
  std::vector<std::int64_t> labels;
  {
    nb::gil_scoped_release release;
    labels = agglo::partition(span(parent), span(joined), leaves);
  }
  return out(std::move(labels));
}

nb::object tree_nodes(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                      const In<std::int64_t>& labels, std::int64_t clusters) {
  std::vector<std::int32_t> nodes;
  {
    nb::gil_scoped_release release;
    nodes = agglo::nodes_of(span(parent), span(size), span(labels), clusters);
  }
  return out(std::move(nodes));
}

nb::tuple tree_below(const In<std::int32_t>& parent, const In<std::int32_t>& size, std::int64_t leaves) {
  agglo::Below found;
  {
    nb::gil_scoped_release release;
    found = agglo::below(span(parent), span(size), leaves);
  }
  return nb::make_tuple(out(std::move(found.indptr)), out(std::move(found.children)),
                        out(std::move(found.start)), out(std::move(found.order)));
}

nb::object tree_linkage(const In<std::int32_t>& parent, const In<double>& height,
                        const In<std::int32_t>& size, const In<std::int32_t>& round, std::int64_t leaves) {
  std::vector<double> rows;
  {
    nb::gil_scoped_release release;
    rows = agglo::linkage(view(parent, height, size, round), leaves);
  }
  return out(std::move(rows));
}

template <class T>
nb::object sums_below(const In<std::int32_t>& parent, const In<T>& values) {
  std::vector<T> sums;
  {
    nb::gil_scoped_release release;
    sums = agglo::sums_below(span(parent), span(values));
  }
  return out(std::move(sums));
}

// Half precision comes as the integers of its bits, for which nanobind has a type.
template <class T, class Bits = T>
nb::tuple node_costs(const Rows<Bits>& X, const In<std::int32_t>& parent, const In<std::int32_t>& size,
                     bool among_points, int threads, const nb::object& progress) {
  const agglo::Points<T> points{reinterpret_cast<const T*>(X.data()), static_cast<std::int64_t>(X.shape(0)),
                                static_cast<std::int64_t>(X.shape(1))};
  const auto centers = among_points ? agglo::Centers::points : agglo::Centers::means;
  agglo::Costs found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::node_costs(points, span(parent), span(size), centers, team, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.costs)), out(std::move(found.centers)));
}

template <class T, class Bits = T>
void bind_costs(nb::module_& module) {
  module.def("node_costs", &node_costs<T, Bits>, "X"_a.noconvert(), "parent"_a, "size"_a, "among_points"_a,
             "threads"_a, "progress"_a.none());
}

nb::object cheapest(const In<std::int32_t>& parent, const In<double>& costs) {
  std::vector<std::uint8_t> joined;
  {
    nb::gil_scoped_release release;
    joined = agglo::cheapest(span(parent), span(costs));
  }
  return out(std::move(joined));
}

nb::tuple price_path(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves) {
  agglo::Path path;
  {
    nb::gil_scoped_release release;
    path = agglo::price_path(span(parent), span(costs), leaves);
  }
  return nb::make_tuple(out(std::move(path.critical)), out(std::move(path.prices)),
                        out(std::move(path.costs)), out(std::move(path.clusters)));
}

nb::tuple possible_numbers(const In<std::int32_t>& parent, std::int64_t leaves) {
  std::vector<std::int64_t> first, last;
  {
    nb::gil_scoped_release release;
    for (const agglo::Run& run : agglo::possible_numbers(span(parent), leaves)) {
      first.push_back(run.first);
      last.push_back(run.last);
    }
  }
  return nb::make_tuple(out(std::move(first)), out(std::move(last)));
}

nb::object cheapest_of(const In<std::int32_t>& parent, const In<double>& costs, std::int64_t leaves,
                       std::int64_t clusters, double price) {
  std::vector<std::uint8_t> joined;
  {
    const nb::object none = nb::none();
    nb::gil_scoped_release release;
    joined = agglo::cheapest_of(span(parent), span(costs), leaves, clusters, price, reporter(none));
  }
  return out(std::move(joined));
}

double dendrogram_purity(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                         const In<std::int32_t>& classes, std::int64_t n_classes) {
  nb::gil_scoped_release release;
  return agglo::dendrogram_purity(span(parent), span(size), span(classes), n_classes);
}

nb::object pairs_met(const In<std::int32_t>& parent, const In<std::int32_t>& size,
                     const In<std::int32_t>& classes, std::int64_t n_classes) {
  std::vector<std::int64_t> met;
  {
    nb::gil_scoped_release release;
    met = agglo::pairs_met(span(parent), span(size), span(classes), n_classes);
  }
  return out(std::move(met));
}

template <class T>
double within_sum(const nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>& points,
                  const In<std::int64_t>& order, const In<std::int64_t>& bounds) {
  const std::int64_t dimensions = static_cast<std::int64_t>(points.shape(1));
  nb::gil_scoped_release release;
  return agglo::within_sum(std::span<const T>(points.data(), points.size()), dimensions, span(order),
                           span(bounds));
}

nb::tuple run_rounds(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                     const In<float>& weights, bool similarity, const std::string& linkage,
                     std::optional<double> missing, int shift, bool wide, const In<double>& thresholds,
                     bool until_stable, bool mutual, int threads, const nb::object& progress) {
  agglo::Plan plan;
  plan.kind = kind_of(similarity);
  plan.linkage = linkage == "average"  ? agglo::Linkage::average
                 : linkage == "single" ? agglo::Linkage::single
                                       : agglo::Linkage::complete;
  plan.missing = missing;
  plan.shift = shift;
  plan.wide = wide;
  plan.thresholds = span(thresholds);
  plan.until_stable = until_stable;
  plan.mutual = mutual;
  agglo::Forest forest;
  const agglo::Report report = reporter(progress);
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    forest = agglo::run_rounds(view(indptr, indices, weights), plan, team, report);
  }
  std::vector<double> threshold, seconds;
  std::vector<std::int64_t> before, after;
  for (const agglo::Round& round : forest.rounds) {
    threshold.push_back(round.threshold);
    before.push_back(round.before);
    after.push_back(round.after);
    seconds.push_back(round.seconds);
  }
  return nb::make_tuple(out(std::move(forest.parent)), out(std::move(forest.value)),
                        out(std::move(forest.size)), out(std::move(forest.round)), out(std::move(threshold)),
                        out(std::move(before)), out(std::move(after)), out(std::move(seconds)));
}

template <class T>
nb::tuple dp_means(const Rows<T>& X, const In<std::int32_t>& order, const Rows<double>& start, double lam,
                   std::int64_t epoch, std::int64_t max_iter, double tol, const nb::capsule& sgemm,
                   int threads, const nb::object& progress) {
  auto* multiply = reinterpret_cast<agglo::Gemm<float>*>(sgemm.data());
  agglo::DpMeans found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::dp_means(points_of(X), span(order), std::span(start.data(), start.size()),
                            {lam, epoch, max_iter, tol}, multiply, team, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.labels)), out(std::move(found.centers)),
                        out(std::move(found.history)), found.converged);
}

template <class T>
nb::object cluster_means(const Rows<T>& X, const In<std::int32_t>& labels, std::int64_t k, int threads) {
  std::vector<double> means;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    means = agglo::cluster_means(points_of(X), span(labels), k, team);
  }
  return out(std::move(means));
}

template <class T>
nb::tuple dp_seeds(const Rows<T>& X, double lam, bool bound, std::uint64_t seed, const nb::capsule& sgemm,
                   int threads, const nb::object& progress) {
  auto* multiply = reinterpret_cast<agglo::Gemm<float>*>(sgemm.data());
  const agglo::SeedRule rule = bound ? agglo::SeedRule::bound : agglo::SeedRule::cost;
  agglo::Seeds found;
  {
    nb::gil_scoped_release release;
    agglo::Team team(threads);
    found = agglo::dp_seeds(points_of(X), lam, rule, seed, multiply, team, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.seeds)), out(std::move(found.labels)),
                        out(std::move(found.distances)));
}

template <class T>
void bind_dp_means(nb::module_& module) {
  module.def("dp_means", &dp_means<T>, "X"_a.noconvert(), "order"_a, "start"_a, "lam"_a, "epoch"_a,
             "max_iter"_a, "tol"_a, "sgemm"_a, "threads"_a, "progress"_a.none());
  module.def("cluster_means", &cluster_means<T>, "X"_a.noconvert(), "labels"_a, "k"_a, "threads"_a);
  module.def("dp_seeds", &dp_seeds<T>, "X"_a.noconvert(), "lam"_a, "bound"_a, "seed"_a, "sgemm"_a,
             "threads"_a, "progress"_a.none());
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The native core of agglo. Private: use the functions of the package.";
  module.def("grouped", &grouped, "n"_a, "sources"_a, "targets"_a, "weights"_a);
  module.def("united", &united, "indptr"_a, "targets"_a, "weights"_a, "similarity"_a, "threads"_a);
  module.def("violation", &violation, "indptr"_a, "indices"_a, "weights"_a, "threads"_a);
  bind_search<float>(module);
  bind_search<double>(module);
  module.def("tree_violation", &tree_violation, "parent"_a, "height"_a, "size"_a, "round"_a, "before"_a,
             "after"_a);
  module.def("tree_settled", &tree_settled, "parent"_a, "height"_a);
  module.def("tree_partition", &tree_partition, "parent"_a, "joined"_a, "leaves"_a);
  module.def("tree_nodes", &tree_nodes, "parent"_a, "size"_a, "labels"_a, "clusters"_a);
  module.def("tree_below", &tree_below, "parent"_a, "size"_a, "leaves"_a);
  module.def("tree_linkage", &tree_linkage, "parent"_a, "height"_a, "size"_a, "round"_a, "leaves"_a);
  module.def("sums_below", &sums_below<std::int64_t>, "parent"_a, "values"_a.noconvert());
  module.def("sums_below", &sums_below<double>, "parent"_a, "values"_a.noconvert());
  bind_costs<float>(module);
  bind_costs<double>(module);
  bind_costs<agglo::Half, std::uint16_t>(module);
  module.def("cheapest", &cheapest, "parent"_a, "costs"_a);
  module.def("price_path", &price_path, "parent"_a, "costs"_a, "leaves"_a);
  module.def("possible_numbers", &possible_numbers, "parent"_a, "leaves"_a);
  module.def("cheapest_of", &cheapest_of, "parent"_a, "costs"_a, "leaves"_a, "clusters"_a, "price"_a);
  module.def("dendrogram_purity", &dendrogram_purity, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("pairs_met", &pairs_met, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("within_sum", &within_sum<float>, "points"_a, "order"_a, "bounds"_a);
  module.def("within_sum", &within_sum<double>, "points"_a, "order"_a, "bounds"_a);
  module.def("run_rounds", &run_rounds, "indptr"_a, "indices"_a, "weights"_a, "similarity"_a, "linkage"_a,
             "missing"_a.none(), "shift"_a, "wide"_a, "thresholds"_a, "until_stable"_a, "mutual"_a,
             "threads"_a, "progress"_a.none());
  bind_dp_means<float>(module);
  bind_dp_means<double>(module);
}
