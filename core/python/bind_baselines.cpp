#include <nanobind/stl/string.h>

#include "perch.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::object perch(const Rows<float>& X, const In<std::int32_t>& nearest, const std::string& search,
                 std::int64_t beam, bool exact_masking, bool balance, std::int64_t max_leaves,
                 const nb::object& progress) {
  const auto rule = search == "exact"   ? agglo::PerchSearch::given
                    : search == "boxes" ? agglo::PerchSearch::boxes
                                        : agglo::PerchSearch::beam;
  std::vector<std::int32_t> parent;
  {
    nb::gil_scoped_release release;
    parent = agglo::perch(points_of<float>(X), span(nearest),
                          {rule, beam, exact_masking, balance, max_leaves}, reporter(progress));
  }
  return out(std::move(parent));
}

}  // namespace

void bind_baselines(nb::module_& module) {
  module.def("perch", &perch, "X"_a.noconvert(), "nearest"_a, "search"_a, "beam"_a, "exact_masking"_a,
             "balance"_a, "max_leaves"_a, "progress"_a.none());
}

}  // namespace agglo::python
