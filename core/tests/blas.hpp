// A simple matrix product that replaces BLAS in tests.
#pragma once

#include <cstdint>

#include "check.hpp"
#include "neighbors/exact.hpp"

// Computes C = A'B. The core uses only this case.
template <class Real>
void gemm(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
          int* ldb, Real* beta, Real* c, int* ldc) {
  CHECK(*transa == 'T' && *transb == 'N' && *alpha == 1 && *beta == 0);
  const std::int64_t rows = *m, columns = *n, terms = *k;  // read once, because sanitizers check every read
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real *x = a + i * *lda, *y = b + j * *ldb;
      Real sum = 0;
      for (std::int64_t l = 0; l < terms; ++l) sum += x[l] * y[l];
      c[j * *ldc + i] = sum;
    }
}

constexpr agglo::Blas blas{gemm<float>, gemm<double>};
