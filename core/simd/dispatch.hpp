// The instruction set of all kernels, which is chosen once, when the program starts.
//
// A kernel is written in plain C++ and, if that pays, again for wider registers. All versions must give the
// same bits: no fused products, and sums in an order that does not depend on the width of a register.
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

// Return the level for a value of the environment variable AGGLO_SIMD: the highest available one if it is
// null or empty. Throws std::runtime_error if the name is unknown or the processor does not support the
// level.
Simd choose_level(const char* wanted);

// Throw what choose_level throws for the environment of this process. A process with a wrong environment runs
// at the plain level until then.
void check_environment();

// Change the level, so that tests can compare levels. No kernel may run in another thread meanwhile.
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
