#include "points/duplicates.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class Word>
nb::object first_equal(const In<std::int64_t>& indptr, const In<Word>& numbers, bool floating, int threads) {
  std::vector<std::int32_t> found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::first_equal(span(indptr), span(numbers), floating, pool);
  }
  return out(std::move(found));
}

}  // namespace

void bind_folding(nb::module_& module) {
  const auto define = [&](auto word) {
    module.def("first_equal", &first_equal<decltype(word)>, "indptr"_a, "numbers"_a, "floating"_a,
               "threads"_a);
  };
  define(std::uint8_t{}), define(std::uint16_t{}), define(std::uint32_t{}), define(std::uint64_t{});
}

}  // namespace agglo::python
