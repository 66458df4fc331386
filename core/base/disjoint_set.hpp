// Disjoint sets (union-find): find the root of an element.
#pragma once

#include <atomic>

#include "base/ids.hpp"

namespace agglo {

// Return the root of element i, and shorten the path from i to the root.
// parent_of(j) returns a reference to the parent of element j.
// Several threads may shorten paths at once, because each thread replaces a parent only by an ancestor.
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
