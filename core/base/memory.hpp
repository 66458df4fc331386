// Memory that is read in no particular order: large arrays, and asking for what will be read soon.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace agglo {

// Asks for large pages where the system has them: scattered reads then seldom miss the address cache, and
// there are fewer pages to fault in.
template <class T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}

  T* allocate(std::size_t count) {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    if (count > (std::numeric_limits<std::size_t>::max() - kPage) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = count * sizeof(T);
    const bool large = bytes >= 2 * kPage;
    void* memory =
        large ? std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage) : std::malloc(bytes + 1);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: nothing is lost if it is not granted
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const LargePages&, const LargePages&) { return true; }
};

template <class T>
using Array = std::vector<T, LargePages<T>>;

// Asks for items ahead of their reading: for the first kilobyte of them, as beyond it the machine has seen
// where it goes.
//
// Compilers take a function that does nothing but this for one that does nothing, and leave out its calls.
// The empty statement keeps them from it.
template <class T>
void prefetch(const T* items, std::int64_t count = 1) {
  constexpr std::int64_t kMost = 1024, kLine = 64;
  const auto* bytes = reinterpret_cast<const char*>(items);
  const std::int64_t size = std::min(count * static_cast<std::int64_t>(sizeof(T)), kMost);
  for (std::int64_t b = 0; b < size; b += kLine) __builtin_prefetch(bytes + b);
  asm volatile("");
}

}  // namespace agglo
