// A 64-bit hash function for arrays of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace agglo {

// Return a hash of the `size` bytes at `data`.
// To hash several arrays together, pass the hash of the previous array as `state`.
inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t state = 0) {
  const char* bytes = static_cast<const char*>(data);
  state ^= size;
  const auto mix = [&state](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 32;
  };
  std::uint64_t word;
  for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
    std::memcpy(&word, bytes, sizeof word);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, bytes, size);
  mix(word);
  return state;
}

}  // namespace agglo
