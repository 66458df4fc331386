#include "python.hpp"
#include "tree/purity.hpp"

namespace agglo::python {
namespace {

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

}  // namespace

void bind_metrics(nb::module_& module) {
  module.def("dendrogram_purity", &dendrogram_purity, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("pairs_met", &pairs_met, "parent"_a, "size"_a, "classes"_a, "n_classes"_a);
  module.def("within_sum", &within_sum<float>, "points"_a, "order"_a, "bounds"_a);
  module.def("within_sum", &within_sum<double>, "points"_a, "order"_a, "bounds"_a);
}

}  // namespace agglo::python
