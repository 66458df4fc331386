// splitmix64: a hash function of integers, and a random number generator.
// splitmix64 gives the same numbers on every machine.
#pragma once

#include <cstdint>

namespace agglo {

// Return the number that splitmix64 generates from the state x.
inline std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Advance the state of the generator and return the next random number.
inline std::uint64_t next_splitmix64(std::uint64_t& state) {
  const std::uint64_t number = splitmix64(state);
  state += 0x9e3779b97f4a7c15u;
  return number;
}

}  // namespace agglo
