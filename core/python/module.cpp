#include "python.hpp"
#include "simd/dispatch.hpp"

NB_MODULE(_core, module) {
  using namespace agglo::python;
  module.doc() = "The compiled core of agglo. It is private: use the functions of the package.";
  agglo::check_environment();  // throws before any kernel runs if AGGLO_SIMD is invalid
  // Turn off leak warnings, because an index may live until the interpreter exits. This is not a leak.
  nanobind::set_leak_warnings(false);
  bind_base(module);
  bind_points(module);
  bind_graph(module);
  bind_neighbors(module);
  bind_sparse(module);
  bind_rounds(module);
  bind_tree(module);
  bind_cut(module);
  bind_paper(module);
}
