// Faster random access to memory: vectors on huge pages, and prefetching.
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

// An allocator that requests huge pages. Huge pages reduce page faults, and TLB misses of random reads.
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
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint that the kernel may ignore
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const LargePages&, const LargePages&) { return true; }
};

// A vector on huge pages.
template <class T>
using Array = std::vector<T, LargePages<T>>;

// Prefetch `count` items, but at most their first kilobyte. The hardware prefetcher loads the other items.
//
// Compilers may remove calls of a function without visible effects.
// The empty asm statement keeps the compiler from removing calls of prefetch.
template <class T>
void prefetch(const T* items, std::int64_t count = 1) {
  constexpr std::int64_t kMaxBytes = 1024, kLine = 64;
  const auto* bytes = reinterpret_cast<const char*>(items);
  const std::int64_t size = std::min(count * static_cast<std::int64_t>(sizeof(T)), kMaxBytes);
  for (std::int64_t b = 0; b < size; b += kLine) __builtin_prefetch(bytes + b);
  asm volatile("");
}

}  // namespace agglo
