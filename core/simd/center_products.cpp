#include "simd/center_products.hpp"

#include "simd/dispatch.hpp"

namespace agglo {
namespace {

// The number of partial sums, which fill a wide register. This number determines how a sum is rounded.
constexpr int kLanes = 8;

// The function sum() is compiled twice: once without AVX2 instructions, and once with them.
// CMakeLists.txt forbids the compiler to fuse or reorder operations.
// So both versions of sum() give the same bits.
template <class Step>
[[gnu::always_inline]] inline double sum(std::int64_t n, const Step& step) {
  double lane[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += step(j + l);
  for (int l = 0; j < n; ++j, ++l) lane[l] += step(j);
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <class T>
[[gnu::always_inline]] inline double square(const double* center, const T* x, std::int64_t n) {
  return sum(n, [=](std::int64_t j) __attribute__((always_inline)) {
    const double difference = x[j] - center[j];
    return difference * difference;
  });
}

template <class T>
[[gnu::always_inline]] inline double square_and_move(double* center, const T* x, double share,
                                                     std::int64_t n) {
  return sum(n, [=](std::int64_t j) __attribute__((always_inline)) {
    const double difference = x[j] - center[j];
    center[j] += share * difference;
    return difference * difference;
  });
}

#ifdef AGGLO_X86

template <class T>
[[AGGLO_AVX2]] double square_avx2(const double* center, const T* x, std::int64_t n) {
  return square(center, x, n);
}

template <class T>
[[AGGLO_AVX2]] double square_and_move_avx2(double* center, const T* x, double share, std::int64_t n) {
  return square_and_move(center, x, share, n);
}

#endif

template <class T>
double squared_distance(const double* center, const void* row, std::int64_t n) {
  const T* x = static_cast<const T*>(row);
  AGGLO_DISPATCH(square, (center, x, n));
}

template <class T>
double move(double* center, const void* row, double share, std::int64_t n) {
  const T* x = static_cast<const T*>(row);
  AGGLO_DISPATCH(square_and_move, (center, x, share, n));
}

template <class T>
CenterKernels kernels() {
  return {squared_distance<T>, move<T>};
}

}  // namespace

CenterKernels center_kernels(NumberType type) {
  return with_number_type(type, []<class T>() { return kernels<T>(); });
}

}  // namespace agglo
