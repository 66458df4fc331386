// Matrix products by BLAS, whose bits differ between processors.
//
// Such products may only prune pairs, by a bound of their error. Where products decide, use simd/product.hpp.
#pragma once

#include <cstdint>
#include <vector>

namespace agglo {

// The signature of BLAS sgemm and dgemm in Fortran. They are called from several threads at once and must not
// start threads themselves.
template <class Real>
using Gemm = void(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
                  int* ldb, Real* beta, Real* c, int* ldc);
struct Blas {
  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
};

// Set products[i * n_columns + j] = row i . column j, both of d numbers. Grows `products` if it is too short.
// Fortran stores matrices by columns, so to it both arguments are matrices with d rows.
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
