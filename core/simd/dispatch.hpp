// The SIMD level of all kernels. The SIMD level is chosen once, when the program starts.
//
// Each kernel has a version in plain C++. Some kernels have faster versions for wider registers, too.
// All versions of a kernel must give the same bits.
// So no version uses fused multiply-add operations, and all versions add numbers in the same order.
#pragma once

#include <string_view>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define AGGLO_X86 1
#endif

namespace agglo {

// The level avx2 includes FMA, F16C and POPCNT. The level avx512 also includes BW, DQ, VL and VNNI.
enum class Simd { plain, avx2, avx512 };

namespace internal {
extern Simd simd_level;
}

inline Simd simd_level() { return internal::simd_level; }

// Return the name of a SIMD level: "plain", "avx2" or "avx512".
std::string_view name_of(Simd level);

// Return all SIMD levels that the processor supports, in increasing order.
std::vector<Simd> available_levels();

// Return the SIMD level for a value of the environment variable AGGLO_SIMD.
// If the value is null or empty, return the highest level that the processor supports.
// If the name is unknown or the processor does not support the level, throw std::runtime_error.
Simd choose_level(const char* wanted);

// If the environment variable AGGLO_SIMD is invalid, throw the error of choose_level.
// If AGGLO_SIMD is invalid, kernels run at the plain SIMD level until this function is called.
void check_environment();

// Set the SIMD level. Tests use this function to compare the levels.
// No other thread may run a kernel at the same time.
void set_simd_level(Simd level);

}  // namespace agglo

#ifdef AGGLO_X86
#define AGGLO_AVX2 gnu::target("avx2,fma,f16c,popcnt")
#define AGGLO_AVX512 gnu::target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
// Calls name_avx2(...) if the SIMD level is at least avx2. Otherwise calls name(...). Returns the result.
#define AGGLO_DISPATCH(name, ...) \
  return ::agglo::simd_level() >= ::agglo::Simd::avx2 ? name##_avx2 __VA_ARGS__ : name __VA_ARGS__
#else
#define AGGLO_DISPATCH(name, ...) return name __VA_ARGS__
#endif
