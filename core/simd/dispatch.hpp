// The instruction set that all kernels use: decided once, when the program starts.
//
// A kernel is written in plain C++ and, where that pays, again for wider registers. Every version must give
// the same bits: no fused products, and sums in an order that does not depend on the width of a register.
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

// "plain", "avx2" or "avx512".
std::string_view name_of(Simd level);

// All levels that the processor has, in increasing order.
std::vector<Simd> available_levels();

// The level to use if the environment variable AGGLO_SIMD is `wanted`; the highest available if it is null or
// empty. Throws std::runtime_error if the name is unknown, or if the processor does not have the level.
Simd choose_level(const char* wanted);

// Throws what choose_level throws for the environment of this process; until then such a process is at the
// plain level.
void check_environment();

// Changes the level. For tests, which compare the levels: no kernel may run in another thread.
void set_simd_level(Simd level);

}  // namespace agglo

#ifdef AGGLO_X86
#define AGGLO_AVX2 gnu::target("avx2,fma,f16c,popcnt")
#define AGGLO_AVX512 gnu::target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
// Returns name_avx2(...) or name(...); both exist wherever AGGLO_X86 is defined.
#define AGGLO_DISPATCH(name, ...) \
  return ::agglo::simd_level() >= ::agglo::Simd::avx2 ? name##_avx2 __VA_ARGS__ : name __VA_ARGS__
#else
#define AGGLO_DISPATCH(name, ...) return name __VA_ARGS__
#endif
