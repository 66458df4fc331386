// A plain BLAS for tests.
#pragma once

#include <cstdint>

#include "check.hpp"
#include "neighbors/exact.hpp"

// The one case that the core asks of it: C = A'B.
template <class Real>
void gemm(char* transa, char* transb, int* m, int* n, int* k, Real* alpha, Real* a, int* lda, Real* b,
          int* ldb, Real* beta, Real* c, int* ldc) {
  CHECK(*transa == 'T' && *transb == 'N' && *alpha == 1 && *beta == 0);
  const std::int64_t rows = *m, columns = *n, terms = *k;  // read once: sanitizers look at every reading
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real *x = a + i * *lda, *y = b + j * *ldb;
      Real sum = 0;
      for (std::int64_t l = 0; l < terms; ++l) sum += x[l] * y[l];
      c[j * *ldc + i] = sum;
    }
}

constexpr agglo::Blas blas{gemm<float>, gemm<double>};
