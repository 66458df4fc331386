// Products of rows with rows by BLAS, whose bits differ between processors. They may only rule out pairs, by
// an error bound. Where their values decide, see simd/product.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// products[i * columns + j] = row i . column j, both of d numbers, which Fortran sees as columns of columns.
inline void multiply(Gemm<float>* sgemm, const float* rows, std::int64_t n_rows, const float* columns,
                     std::int64_t n_columns, std::int64_t d, std::vector<float>& products) {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(n_columns), n = static_cast<int>(n_rows), k = static_cast<int>(d);
  float one = 1, zero = 0;
  if (products.size() < static_cast<std::size_t>(n_rows * n_columns)) products.resize(n_rows * n_columns);
  sgemm(&transposed, &plain, &m, &n, &k, &one, const_cast<float*>(columns), &k, const_cast<float*>(rows), &k,
        &zero, products.data(), &m);
}

// The images of points, by their places in `ids`, one after the other.
template <class T>
void gather(const Space<T>& space, std::span<const std::int32_t> ids, std::span<const std::int32_t> places,
            std::vector<float>& images) {
  constexpr std::size_t ahead = 4;
  const std::int64_t d = space.d();
  if (images.size() < places.size() * d) images.resize(places.size() * d);
  for (std::size_t s = 0; s < places.size(); ++s) {
    if (s + ahead < places.size()) prefetch(space.points().row(ids[places[s + ahead]]), d);
    space.image(ids[places[s]], images.data() + s * d);
  }
}

}  // namespace agglo
