// Bindings of core/paper: the DP-means solvers and the baselines Perch and Grinch.
#include <nanobind/stl/string.h>

#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"
#include "paper/exemplars.hpp"
#include "paper/grinch.hpp"
#include "paper/perch.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple solve_dp_means(const Rows<T>& X, const In<std::int32_t>& order, const Rows<double>& start,
                         double lam, std::int64_t epoch, std::int64_t max_iter, double tol,
                         const nb::capsule& sgemm, int n_threads, const nb::object& progress) {
  auto* multiply = to_sgemm(sgemm);
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return paper::solve_dp_means(to_points<T>(X), span(order), flatten(start), {lam, epoch, max_iter, tol},
                                 multiply, run...);
  });
  return nb::make_tuple(to_numpy(std::move(found.labels)), to_numpy(std::move(found.centers)),
                        to_numpy(std::move(found.history)), found.converged);
}

template <class T>
nb::object compute_cluster_means(const Rows<T>& X, const In<std::int32_t>& labels, std::int64_t k,
                                 int n_threads) {
  return to_numpy(without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return paper::compute_cluster_means(to_points<T>(X), span(labels), k, pool);
  }));
}

template <class T>
nb::tuple draw_dp_seeds(const Rows<T>& X, double lam, bool bound, std::uint64_t seed,
                        const nb::capsule& sgemm, int n_threads, const nb::object& progress) {
  auto* multiply = to_sgemm(sgemm);
  const auto rule = bound ? paper::SeedRule::bound : paper::SeedRule::cost;
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return paper::draw_dp_seeds(to_points<T>(X), lam, rule, seed, multiply, run...);
  });
  return nb::make_tuple(to_numpy(std::move(found.seeds)), to_numpy(std::move(found.labels)),
                        to_numpy(std::move(found.distances)));
}

template <class T>
nb::tuple solve_exemplars(const Rows<T>& X, const In<double>& weights, const In<std::int32_t>& seeds,
                          const In<std::int32_t>& labels, double lam, std::int64_t max_iter, double tol,
                          const nb::capsule& sgemm, int n_threads, const nb::object& progress) {
  auto* multiply = to_sgemm(sgemm);
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return paper::solve_exemplars(to_points<T>(X), span(weights), span(seeds), span(labels),
                                  {lam, max_iter, tol}, multiply, run...);
  });
  return nb::make_tuple(to_numpy(std::move(found.exemplars)), to_numpy(std::move(found.labels)),
                        to_numpy(std::move(found.history)), found.cost, found.relaxed, found.bound,
                        found.converged);
}

nb::object build_perch_tree(const Rows<float>& X, const In<std::int32_t>& nearest, const std::string& search,
                            std::int64_t beam, bool exact_masking, bool balance, std::int64_t max_leaves,
                            const nb::object& progress) {
  const auto rule = search == "exact"   ? paper::PerchSearch::given
                    : search == "boxes" ? paper::PerchSearch::boxes
                                        : paper::PerchSearch::beam;
  return to_numpy(without_gil([&] {
    return paper::build_perch_tree(to_points<float>(X), span(nearest),
                                   {rule, beam, exact_masking, balance, max_leaves}, make_report(progress));
  }));
}

nb::tuple build_grinch_tree(const Rows<float>& X, const Rows<std::int32_t>& neighbors,
                            const std::string& linkage, bool dot, bool scan, bool graft,
                            bool single_elimination, std::int64_t cap, const nb::object& progress) {
  const auto rule = linkage == "average"    ? paper::GrinchLinkage::average
                    : linkage == "centroid" ? paper::GrinchLinkage::centroid
                    : linkage == "single"   ? paper::GrinchLinkage::single
                                            : paper::GrinchLinkage::complete;
  auto tree = without_gil([&] {
    return paper::build_grinch_tree(to_points<float>(X), flatten(neighbors),
                                    static_cast<std::int64_t>(neighbors.shape(1)),
                                    {rule, dot, scan, graft, single_elimination, cap}, make_report(progress));
  });
  return nb::make_tuple(to_numpy(std::move(tree.parent)), to_numpy(std::move(tree.value)));
}

template <class T>
void bind_dp_means(nb::module_& module) {
  module.def("solve_dp_means", &solve_dp_means<T>, "X"_a.noconvert(), "order"_a, "start"_a, "lam"_a,
             "epoch"_a, "max_iter"_a, "tol"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("compute_cluster_means", &compute_cluster_means<T>, "X"_a.noconvert(), "labels"_a, "k"_a,
             "n_threads"_a);
  module.def("draw_dp_seeds", &draw_dp_seeds<T>, "X"_a.noconvert(), "lam"_a, "bound"_a, "seed"_a, "sgemm"_a,
             "n_threads"_a, "progress"_a.none());
  module.def("solve_exemplars", &solve_exemplars<T>, "X"_a.noconvert(), "weights"_a, "seeds"_a, "labels"_a,
             "lam"_a, "max_iter"_a, "tol"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none());
}

}  // namespace

void bind_paper(nb::module_& module) {
  bind_dp_means<float>(module);
  bind_dp_means<double>(module);
  module.def("build_perch_tree", &build_perch_tree, "X"_a.noconvert(), "nearest"_a, "search"_a, "beam"_a,
             "exact_masking"_a, "balance"_a, "max_leaves"_a, "progress"_a.none());
  module.def("build_grinch_tree", &build_grinch_tree, "X"_a.noconvert(), "neighbors"_a, "linkage"_a, "dot"_a,
             "scan"_a, "graft"_a, "single_elimination"_a, "cap"_a, "progress"_a.none());
}

}  // namespace agglo::python
