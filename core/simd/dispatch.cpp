#include "simd/dispatch.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#ifdef AGGLO_X86
#include <cpuid.h>
#endif

namespace agglo {
namespace {

constexpr const char* kVariable = "AGGLO_SIMD";
constexpr std::string_view kNames[] = {"plain", "avx2", "avx512"};

#ifdef AGGLO_X86
// clang's __builtin_cpu_supports does not know the name f16c.
bool has_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool has(Simd level) {
#ifdef AGGLO_X86
  __builtin_cpu_init();
  if (level >= Simd::avx2 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               has_f16c() && __builtin_cpu_supports("popcnt")))
    return false;
  return level < Simd::avx512 || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                                  __builtin_cpu_supports("avx512vnni"));
#else
  return level == Simd::plain;
#endif
}

std::string join_names(const std::vector<Simd>& levels) {
  std::string names;
  for (const Simd level : levels) names += (names.empty() ? "" : ", ") + std::string(name_of(level));
  return names;
}

// No exception may be thrown before main. If AGGLO_SIMD is invalid, check_environment throws later.
Simd initial_level() noexcept {
  try {
    return choose_level(std::getenv(kVariable));
  } catch (...) {
    return Simd::plain;
  }
}

}  // namespace

Simd internal::simd_level = initial_level();

std::string_view name_of(Simd level) { return kNames[static_cast<int>(level)]; }

std::vector<Simd> available_levels() {
  std::vector<Simd> levels;
  for (const Simd level : {Simd::plain, Simd::avx2, Simd::avx512})
    if (has(level)) levels.push_back(level);
  return levels;
}

Simd choose_level(const char* wanted) {
  const std::vector<Simd> levels = available_levels();
  if (wanted == nullptr || *wanted == '\0') return levels.back();
  for (const Simd level : levels)
    if (name_of(level) == wanted) return level;
  std::string cause = " is unknown";
  for (const std::string_view name : kNames)
    if (name == wanted) cause = " needs instructions that this processor does not have";
  throw std::runtime_error(std::string(kVariable) + "=" + wanted + cause +
                           ": unset it, or set it to one of " + join_names(levels));
}

void check_environment() { choose_level(std::getenv(kVariable)); }

void set_simd_level(Simd level) { internal::simd_level = level; }

}  // namespace agglo
