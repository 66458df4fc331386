// float32 matrix products with the same bits on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// Set products[i * n_columns + j] to the dot product of row i and column j, both with d numbers.
// Grows `products` if it is too short.
//
// Every product is summed from the first term to the last, without fused operations.
// So a product depends only on its two rows: not on the processor, a BLAS, or the other rows of the call.
// If products only prune pairs by an error bound, BLAS takes about half the time (base/blas.hpp).
void multiply_rows(const float* rows, std::int64_t n_rows, const float* columns, std::int64_t n_columns,
                   std::int64_t d, std::vector<float>& products);

}  // namespace agglo
