// Matrix products in float32 whose bits are the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// Set products[i * n_columns + j] = row i . column j, both of d numbers. Grows `products` if it is too short.
//
// Every product is summed from the first term to the last, without fused operations. So it depends on its two
// rows alone, not on the processor, a BLAS, or the other rows of the call. If products only prune pairs by an
// error bound, a BLAS takes about half the time (base/blas.hpp).
void multiply_rows(const float* rows, std::int64_t n_rows, const float* columns, std::int64_t n_columns,
                   std::int64_t d, std::vector<float>& products);

}  // namespace agglo
