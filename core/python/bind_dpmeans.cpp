#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"
#include "paper/exemplars.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple dp_means(const Rows<T>& X, const In<std::int32_t>& order, const Rows<double>& start, double lam,
                   std::int64_t epoch, std::int64_t max_iter, double tol, const nb::capsule& sgemm,
                   int threads, const nb::object& progress) {
  auto* multiply = sgemm_of(sgemm);
  agglo::DpMeans found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::dp_means(points_of<T>(X), span(order), std::span(start.data(), start.size()),
                            {lam, epoch, max_iter, tol}, multiply, pool, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.labels)), out(std::move(found.centers)),
                        out(std::move(found.history)), found.converged);
}

template <class T>
nb::object cluster_means(const Rows<T>& X, const In<std::int32_t>& labels, std::int64_t k, int threads) {
  std::vector<double> means;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    means = agglo::cluster_means(points_of<T>(X), span(labels), k, pool);
  }
  return out(std::move(means));
}

template <class T>
nb::tuple dp_seeds(const Rows<T>& X, double lam, bool bound, std::uint64_t seed, const nb::capsule& sgemm,
                   int threads, const nb::object& progress) {
  auto* multiply = sgemm_of(sgemm);
  const agglo::SeedRule rule = bound ? agglo::SeedRule::bound : agglo::SeedRule::cost;
  agglo::Seeds found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::dp_seeds(points_of<T>(X), lam, rule, seed, multiply, pool, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.seeds)), out(std::move(found.labels)),
                        out(std::move(found.distances)));
}

template <class T>
nb::tuple exemplars(const Rows<T>& X, const In<double>& weights, const In<std::int32_t>& seeds,
                    const In<std::int32_t>& labels, double lam, std::int64_t max_iter, double tol,
                    const nb::capsule& sgemm, int threads, const nb::object& progress) {
  auto* multiply = sgemm_of(sgemm);
  agglo::Exemplars found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::exemplars(points_of<T>(X), span(weights), span(seeds), span(labels), {lam, max_iter, tol},
                             multiply, pool, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.exemplars)), out(std::move(found.labels)),
                        out(std::move(found.history)), found.cost, found.relaxed, found.bound,
                        found.converged);
}

template <class T>
void bind_dp_means(nb::module_& module) {
  module.def("dp_means", &dp_means<T>, "X"_a.noconvert(), "order"_a, "start"_a, "lam"_a, "epoch"_a,
             "max_iter"_a, "tol"_a, "sgemm"_a, "threads"_a, "progress"_a.none());
  module.def("cluster_means", &cluster_means<T>, "X"_a.noconvert(), "labels"_a, "k"_a, "threads"_a);
  module.def("dp_seeds", &dp_seeds<T>, "X"_a.noconvert(), "lam"_a, "bound"_a, "seed"_a, "sgemm"_a,
             "threads"_a, "progress"_a.none());
  module.def("exemplars", &exemplars<T>, "X"_a.noconvert(), "weights"_a, "seeds"_a, "labels"_a, "lam"_a,
             "max_iter"_a, "tol"_a, "sgemm"_a, "threads"_a, "progress"_a.none());
}

}  // namespace

void bind_dpmeans(nb::module_& module) {
  bind_dp_means<float>(module);
  bind_dp_means<double>(module);
}

}  // namespace agglo::python
