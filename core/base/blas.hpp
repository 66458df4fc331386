// Matrix products by BLAS. Their bits differ between processors.
//
// Use these products only to prune pairs by an error bound.
// If products determine a result, use simd/product.hpp.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// The Fortran signature of the BLAS functions sgemm and dgemm.
// Several threads call these functions at once, so the functions must not start threads themselves.
template <class Real>
using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
                  int* ldb, Real* beta, Real* c, int* ldc);
struct Blas {
  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
};

// Set products[i * n_columns + j] to the dot product of row i and column j, both with d numbers.
// Grows `products` if it is too short.
// Fortran stores matrices by columns, so both arguments are matrices with d rows for BLAS.
template <class Real>
void multiply_blas(Gemm<Real>* gemm, const Real* rows, std::int64_t n_rows, const Real* columns,
                   std::int64_t n_columns, std::int64_t d, std::vector<Real>& products) {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(n_columns), n = static_cast<int>(n_rows), k = static_cast<int>(d);
  Real one = 1, zero = 0;
  if (products.size() < static_cast<std::size_t>(n_rows * n_columns)) products.resize(n_rows * n_columns);
  gemm(&transposed, &plain, &m, &n, &k, &one, const_cast<Real*>(columns), &k, const_cast<Real*>(rows), &k,
       &zero, products.data(), &m);
}

}  // namespace agglo
