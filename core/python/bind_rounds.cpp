// Bindings of core/rounds: the rounds of SCC, Affinity and HAC, and the attachment of new points to a tree.
//
// Groups of parameters are classes with named members. Such an object keeps the arrays of its members alive.
// Arrays of parameters must be passed without conversion, because a converted copy would not stay alive.
#include <nanobind/stl/optional.h>

#include "python.hpp"
#include "rounds/attach.hpp"
#include "rounds/rounds.hpp"

namespace agglo {

static auto to_tuple(Forest&& forest) {
  std::vector<double> threshold, seconds;
  std::vector<std::int64_t> before, after;
  for (const Round& round : forest.rounds) {
    threshold.push_back(round.threshold);
    before.push_back(round.before);
    after.push_back(round.after);
    seconds.push_back(round.seconds);
  }
  using python::ReadOnly;
  return std::tuple(ReadOnly{std::move(forest.parent)}, ReadOnly{std::move(forest.value)},
                    ReadOnly{std::move(forest.size)}, ReadOnly{std::move(forest.round)},
                    ReadOnly{std::move(threshold)}, ReadOnly{std::move(before)}, ReadOnly{std::move(after)},
                    ReadOnly{std::move(seconds)});
}
static auto to_tuple(Attachments&& found) {
  return std::tuple(std::move(found.node), std::move(found.round), std::move(found.value));
}
static auto to_tuple(NodeMoments&& found) {
  return std::tuple(std::move(found.weight), std::move(found.squared_norm), std::move(found.spread),
                    std::move(found.mean));
}

}  // namespace agglo

namespace agglo::python {

template <>
inline constexpr std::array<std::string_view, 3> names<Linkage>{"average", "single", "complete"};
template <>
inline constexpr std::array<std::string_view, 3> names<VectorLinkage>{"exact-average", "centroid", "ward"};

}  // namespace agglo::python

namespace nanobind::detail {

template <>
struct type_caster<agglo::AttachTree>
    : tuple_argument<&to_view<agglo::AttachTree, std::span<const std::int32_t>, std::span<const std::int32_t>,
                              std::span<const std::int32_t>, std::int64_t>> {};
template <>
struct type_caster<agglo::InitialClusters>
    : tuple_argument<&to_view<agglo::InitialClusters, std::span<const double>, std::span<const std::int64_t>,
                              std::span<const std::int64_t>>> {};
template <>
struct type_caster<agglo::Linkage> : enum_caster<agglo::Linkage> {};
template <>
struct type_caster<agglo::VectorLinkage> : enum_caster<agglo::VectorLinkage> {};

}  // namespace nanobind::detail

namespace agglo::python {

namespace {

// A contiguous array of rows that the core writes to.
using WritableRows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void init_vectors(Vectors* vectors, const WritableRows& means, VectorLinkage linkage, Metric metric,
                  std::span<const double> weights, std::span<const double> spreads) {
  new (vectors) Vectors{{means.data(), means.size()},
                        static_cast<std::int64_t>(means.shape(1)),
                        linkage,
                        metric,
                        weights,
                        spreads};
}

void bind_parameters(nb::module_& module) {
  nb::class_<LinkageSpec>(module, "LinkageSpec")
      .def(nb::init<Kind, Linkage, std::optional<double>, int, std::size_t, int>(), "kind"_a,
           "linkage"_a = "average", nb::kw_only(), "missing"_a = nb::none(), "shift"_a = 0, "limbs"_a = 1,
           "count_shift"_a = 0);
  nb::class_<RoundPlan>(module, "RoundPlan")
      .def(nb::init<const LinkageSpec&, std::span<const double>, bool, bool>(), "linkage"_a, nb::kw_only(),
           "thresholds"_a.noconvert(), "until_stable"_a, "mutual"_a, nb::keep_alive<1, 3>());
  nb::class_<Constraints>(module, "Constraints")
      .def(nb::init<std::span<const Id>, std::span<const Id>, std::span<const Id>, double,
                    std::span<const double>>(),
           nb::kw_only(), "must_link"_a.noconvert(), "cannot_link"_a.noconvert(), "groups"_a.noconvert(),
           "max_weight"_a, "weights"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
           nb::keep_alive<1, 4>(), nb::keep_alive<1, 6>());
  nb::class_<Vectors>(module, "Vectors")
      .def("__init__", &init_vectors, "means"_a.noconvert(), nb::kw_only(), "linkage"_a, "metric"_a,
           "weights"_a.noconvert(), "spreads"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(),
           nb::keep_alive<1, 6>());
  nb::class_<EdgeAttachment>(module, "EdgeAttachment")
      .def(nb::init<const LinkageSpec&, std::span<const float>, std::span<const double>>(), "linkage"_a,
           nb::kw_only(), "thresholds"_a.noconvert(), "weights"_a.noconvert(), nb::keep_alive<1, 3>(),
           nb::keep_alive<1, 4>());
  nb::class_<MeanAttachment>(module, "MeanAttachment")
      .def(nb::init<VectorLinkage, Metric, std::int64_t, std::span<const float>, std::span<const double>,
                    std::span<const double>, std::span<const double>, std::span<const float>,
                    std::span<const float>>(),
           nb::kw_only(), "linkage"_a, "metric"_a, "n_columns"_a, "points"_a.noconvert(),
           "weight"_a.noconvert(), "squared_norm"_a.noconvert(), "spread"_a.noconvert(), "mean"_a.noconvert(),
           "thresholds"_a.noconvert(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(),
           nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>());
}

}  // namespace

void bind_rounds(nb::module_& module) {
  bind_parameters(module);
  using ByEdges = Forest(const GraphView&, const RoundPlan&, const Constraints&, ThreadPool&, const Report&);
  using ByVectors = Forest(const GraphView&, const Vectors&, const RoundPlan&, const Constraints&,
                           ThreadPool&, const Report&);
  using FromClusters =
      Forest(const GraphView&, const InitialClusters&, const RoundPlan&, ThreadPool&, const Report&);
  module.def("run_rounds", static_cast<ByEdges*>(&run_rounds), "graph"_a, "plan"_a, "constraints"_a,
             "n_threads"_a, "progress"_a.none(), ReleaseGil());
  // The rounds overwrite the means of `vectors`, so the caller passes a copy.
  module.def("run_vector_rounds", static_cast<ByVectors*>(&run_rounds), "graph"_a, "vectors"_a, "plan"_a,
             "constraints"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("run_cluster_rounds", static_cast<FromClusters*>(&run_rounds), "graph"_a, "clusters"_a, "plan"_a,
             "n_threads"_a, "progress"_a.none(), ReleaseGil());

  const auto bind_attachment = [&]<class Rule>(const Rule*) {
    using Attach =
        Attachments(const AttachTree&, const DirectedView&, const Rule&, ThreadPool&, const Report&);
    module.def("attach_points", static_cast<Attach*>(&attach_points), "tree"_a, "edges"_a, "rule"_a,
               "n_threads"_a, "progress"_a.none(), ReleaseGil());
  };
  bind_attachment(static_cast<const EdgeAttachment*>(nullptr));
  bind_attachment(static_cast<const MeanAttachment*>(nullptr));
  // compute_node_moments overwrites the means of `vectors`, so the caller passes a copy.
  module.def("compute_node_moments", &compute_node_moments, "parent"_a, "leaves"_a, "vectors"_a,
             ReleaseGil());
}

}  // namespace agglo::python
