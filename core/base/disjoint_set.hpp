// Disjoint sets (union-find): find the root of an element.
#pragma once

#include <atomic>

#include "base/ids.hpp"

namespace agglo {

// Returns the root of i and shortens the path from i to the root.
// parent_of(j) returns a reference to the parent of j.
// Threads may shorten paths concurrently: every parent that a thread reads or writes is an ancestor of i.
template <class ParentOf>
[[gnu::always_inline]] inline Id find_root(Id i, const ParentOf& parent_of) {
  const auto up = [&](Id j) { return std::atomic_ref<Id>(parent_of(j)); };
  for (Id parent = up(i).load(std::memory_order_relaxed); parent != i;) {
    const Id above = up(parent).load(std::memory_order_relaxed);
    if (above != parent) up(i).store(above, std::memory_order_relaxed);
    i = parent;
    parent = above;
  }
  return i;
}

}  // namespace agglo
