#include <nanobind/stl/string.h>

#include "paper/grinch.hpp"
#include "paper/perch.hpp"
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

nb::tuple grinch(const Rows<float>& X, const Rows<std::int32_t>& near, const std::string& linkage, bool dot,
                 bool scan, bool graft, bool single_elimination, std::int64_t cap,
                 const nb::object& progress) {
  const auto rule = linkage == "average"    ? agglo::GrinchLinkage::average
                    : linkage == "centroid" ? agglo::GrinchLinkage::centroid
                    : linkage == "single"   ? agglo::GrinchLinkage::single
                                            : agglo::GrinchLinkage::complete;
  agglo::Grinch found;
  {
    nb::gil_scoped_release release;
    found = agglo::grinch(points_of<float>(X), {near.data(), near.size()},
                          static_cast<std::int64_t>(near.shape(1)),
                          {rule, dot, scan, graft, single_elimination, cap}, reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.parent)), out(std::move(found.value)));
}

}  // namespace

void bind_baselines(nb::module_& module) {
  module.def("perch", &perch, "X"_a.noconvert(), "nearest"_a, "search"_a, "beam"_a, "exact_masking"_a,
             "balance"_a, "max_leaves"_a, "progress"_a.none());
  module.def("grinch", &grinch, "X"_a.noconvert(), "near"_a, "linkage"_a, "dot"_a, "scan"_a, "graft"_a,
             "single_elimination"_a, "cap"_a, "progress"_a.none());
}

}  // namespace agglo::python
