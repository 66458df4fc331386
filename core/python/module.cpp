#include "python.hpp"
#include "simd/dispatch.hpp"

NB_MODULE(_core, module) {
  using namespace agglo::python;
  module.doc() = "The native core of agglo. Private: use the functions of the package.";
  agglo::check_environment();  // before any kernel runs
  // An index that lives until the program ends is no leak.
  nanobind::set_leak_warnings(false);
  bind_numerics(module);
  bind_folding(module);
  bind_graph(module);
  bind_neighbors(module);
  bind_queries(module);
  bind_candidates(module);
  bind_sparse(module);
  bind_rounds(module);
  bind_predict(module);
  bind_tree(module);
  bind_cut(module);
  bind_metrics(module);
  bind_dpmeans(module);
  bind_baselines(module);
}
