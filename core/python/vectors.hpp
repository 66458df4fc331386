// Points as linkages of the points themselves take them.
#pragma once

#include "python.hpp"
#include "rounds/moments.hpp"

namespace agglo::python {

using Means = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline agglo::Vectors vectors_of(const Means& means) {
  agglo::Vectors vectors;
  vectors.means = {means.data(), means.size()};
  vectors.d = static_cast<std::int64_t>(means.shape(1));
  return vectors;
}

inline agglo::VectorLinkage vector_linkage_of(const std::string& name) {
  if (name == "exact-average") return agglo::VectorLinkage::average;
  return name == "centroid" ? agglo::VectorLinkage::centroid : agglo::VectorLinkage::ward;
}

}  // namespace agglo::python
