// Matrix products computed by BLAS. The last bits of BLAS products differ between processors.
//
// So use BLAS products only to exclude pairs of points, with an allowance for the rounding error.
// If products determine a result, use multiply_rows of simd/product.hpp.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// The Fortran signature of the BLAS functions sgemm and dgemm.
// Several threads call the BLAS functions at once, so the BLAS functions must not start threads themselves.
template <class Real>
using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
                  int* ldb, Real* beta, Real* c, int* ldc);
struct Blas {
  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
};

// Set products[i * n_columns + j] to the dot product of row i and column j.
// Each row and each column consists of d numbers. If `products` is too short, the function resizes it.
// Fortran stores matrices by columns. So BLAS reads `rows` and `columns` as matrices with d rows each.
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
