// The SIMD level of all kernels. It is chosen once, when the program starts.
//
// A kernel is written in plain C++. If that is faster, it is also written for wider registers.
// All versions must give the same bits: they use no fused operations, and the same order of sums.
#pragma once

#include <string_view>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define AGGLO_X86 1
#endif

namespace agglo {

// avx2 includes FMA, F16C and POPCNT. avx512 includes BW, DQ, VL and VNNI.
enum class Simd { plain, avx2, avx512 };

namespace internal {
extern Simd simd_level;
}

inline Simd simd_level() { return internal::simd_level; }

// Return "plain", "avx2" or "avx512".
std::string_view name_of(Simd level);

// Return all levels that the processor supports, in increasing order.
std::vector<Simd> available_levels();

// Return the SIMD level for a value of the environment variable AGGLO_SIMD.
// If the value is null or empty, return the highest available level.
// Throws std::runtime_error if the name is unknown or the processor does not support the level.
Simd choose_level(const char* wanted);

// Throw the error of choose_level if AGGLO_SIMD is invalid in this process.
// Until this call, a process with an invalid AGGLO_SIMD runs at the plain level.
void check_environment();

// Change the level, so that tests can compare levels. No other thread may run a kernel at the same time.
void set_simd_level(Simd level);

}  // namespace agglo

#ifdef AGGLO_X86
#define AGGLO_AVX2 gnu::target("avx2,fma,f16c,popcnt")
#define AGGLO_AVX512 gnu::target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
// Returns name_avx2(...) or name(...). Both exist if AGGLO_X86 is defined.
#define AGGLO_DISPATCH(name, ...) \
  return ::agglo::simd_level() >= ::agglo::Simd::avx2 ? name##_avx2 __VA_ARGS__ : name __VA_ARGS__
#else
#define AGGLO_DISPATCH(name, ...) return name __VA_ARGS__
#endif
