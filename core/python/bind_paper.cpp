// Bindings of core/paper: the DP-means solvers and the baselines Perch and Grinch.
#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"
#include "paper/exemplars.hpp"
#include "paper/grinch.hpp"
#include "paper/perch.hpp"
#include "python.hpp"

namespace agglo::paper {

static auto to_tuple(DpMeans&& found) {
  return std::tuple(std::move(found.labels), std::move(found.centers), std::move(found.history),
                    found.converged);
}
static auto to_tuple(Seeds&& found) {
  return std::tuple(std::move(found.seeds), std::move(found.labels), std::move(found.distances));
}
static auto to_tuple(Exemplars&& found) {
  return std::tuple(std::move(found.exemplars), std::move(found.labels), std::move(found.history), found.cost,
                    found.relaxed, found.bound, found.converged);
}
static auto to_tuple(Grinch&& tree) { return std::tuple(std::move(tree.parent), std::move(tree.value)); }

}  // namespace agglo::paper

namespace agglo::python {

template <>
inline constexpr std::array<std::string_view, 2> names<paper::SeedRule>{"cost", "bound"};
template <>
inline constexpr std::array<std::string_view, 3> names<paper::PerchSearch>{"exact", "boxes", "beam"};
template <>
inline constexpr std::array<std::string_view, 4> names<paper::GrinchLinkage>{"average", "centroid", "single",
                                                                             "complete"};

}  // namespace agglo::python

namespace nanobind::detail {

template <>
struct type_caster<agglo::paper::SeedRule> : enum_caster<agglo::paper::SeedRule> {};
template <>
struct type_caster<agglo::paper::PerchSearch> : enum_caster<agglo::paper::PerchSearch> {};
template <>
struct type_caster<agglo::paper::GrinchLinkage> : enum_caster<agglo::paper::GrinchLinkage> {};

}  // namespace nanobind::detail

namespace agglo::python {

namespace {

paper::DpMeans solve_dp_means(const AnyPoints& points, std::span<const std::int32_t> order,
                              std::span<const double> start, double lam, std::int64_t epoch,
                              std::int64_t max_iter, double tol, Gemm<float>* sgemm, ThreadPool& pool,
                              const Report& report) {
  return paper::solve_dp_means(points, order, start, {lam, epoch, max_iter, tol}, sgemm, pool, report);
}

paper::Exemplars solve_exemplars(const AnyPoints& points, std::span<const double> weights,
                                 std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                                 double lam, std::int64_t max_iter, double tol, Gemm<float>* sgemm,
                                 ThreadPool& pool, const Report& report) {
  return paper::solve_exemplars(points, weights, seeds, labels, {lam, max_iter, tol}, sgemm, pool, report);
}

std::vector<std::int32_t> build_perch_tree(const Points<float>& points, std::span<const std::int32_t> nearest,
                                           paper::PerchSearch search, std::int64_t beam, bool exact_masking,
                                           bool balance, std::int64_t max_leaves, const Report& report) {
  return paper::build_perch_tree(points, nearest, {search, beam, exact_masking, balance, max_leaves}, report);
}

paper::Grinch build_grinch_tree(const Points<float>& points, const Points<std::int32_t>& neighbors,
                                paper::GrinchLinkage linkage, bool dot, bool scan, bool graft,
                                bool single_elimination, std::int64_t cap, const Report& report) {
  return paper::build_grinch_tree(points, std::span(neighbors.data, neighbors.n * neighbors.d), neighbors.d,
                                  {linkage, dot, scan, graft, single_elimination, cap}, report);
}

}  // namespace

void bind_paper(nb::module_& module) {
  module.def("solve_dp_means", &solve_dp_means, "points"_a.noconvert(), "order"_a, "start"_a, "lam"_a,
             "epoch"_a, "max_iter"_a, "tol"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("compute_cluster_means", &paper::compute_cluster_means, "points"_a.noconvert(), "labels"_a,
             "k"_a, "n_threads"_a, ReleaseGil());
  module.def("draw_dp_seeds", &paper::draw_dp_seeds, "points"_a.noconvert(), "lam"_a, "rule"_a, "seed"_a,
             "sgemm"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("solve_exemplars", &solve_exemplars, "points"_a.noconvert(), "weights"_a, "seeds"_a, "labels"_a,
             "lam"_a, "max_iter"_a, "tol"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("build_perch_tree", &build_perch_tree, "points"_a.noconvert(), "nearest"_a, "search"_a, "beam"_a,
             "exact_masking"_a, "balance"_a, "max_leaves"_a, "progress"_a.none(), ReleaseGil());
  module.def("build_grinch_tree", &build_grinch_tree, "points"_a.noconvert(), "neighbors"_a, "linkage"_a,
             "dot"_a, "scan"_a, "graft"_a, "single_elimination"_a, "cap"_a, "progress"_a.none(),
             ReleaseGil());
}

}  // namespace agglo::python
