// float32 matrix products with the same bits on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// Set products[i * n_columns + j] to the dot product of row i and column j.
// Each row and each column consists of d numbers. If `products` is too short, the function resizes it.
//
// The terms of a product are added from the first to the last, without fused multiply-add operations.
// So a product depends only on its row and its column, not on the processor or on other rows.
// If products only prune pairs by an error bound, use multiply_blas of base/blas.hpp.
// BLAS takes about half the time of this function.
void multiply_rows(const float* rows, std::int64_t n_rows, const float* columns, std::int64_t n_columns,
                   std::int64_t d, std::vector<float>& products);

}  // namespace agglo
