// Priority queues that can be merged: pairing heaps.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace agglo {

// Disjoint pairing heaps over the items 0 to n - 1.
// The top item of a heap identifies the heap. The empty heap is -1.
// `comes_before(a, b)` returns whether item a has to leave the heap before item b.
// No function is recursive, because a heap may be very deep.
template <class ComesBefore>
class PairingHeaps {
 public:
  PairingHeaps(std::size_t n, ComesBefore comes_before)
      : child_(n, -1), sibling_(n, -1), comes_before_(std::move(comes_before)) {}

  // Merges two heaps. Returns the top of the merged heap.
  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a < 0) return b;
    if (b < 0) return a;
    if (comes_before_(b, a)) std::swap(a, b);
    sibling_[b] = child_[a];
    child_[a] = b;
    return a;
  }

  // Removes the top item from its heap. Returns the top of the remaining heap.
  std::int32_t pop(std::int32_t top) {
    std::int32_t pairs = -1;  // merged pairs, linked by sibling_ in reverse order
    for (std::int32_t a = child_[top]; a >= 0;) {
      const std::int32_t b = sibling_[a];
      const std::int32_t next = b < 0 ? -1 : sibling_[b];
      sibling_[a] = -1;
      if (b >= 0) sibling_[b] = -1;
      const std::int32_t pair = merge(a, b);
      sibling_[pair] = pairs;
      pairs = pair;
      a = next;
    }
    std::int32_t heap = -1;
    while (pairs >= 0) {
      const std::int32_t next = sibling_[pairs];
      sibling_[pairs] = -1;
      heap = merge(heap, pairs);
      pairs = next;
    }
    return heap;
  }

  // Calls visit(item) for each item of a heap, in no particular order.
  template <class Visit>
  void for_each(std::int32_t heap, const Visit& visit) const {
    std::vector<std::int32_t> waiting;
    if (heap >= 0) waiting.push_back(heap);
    while (!waiting.empty()) {
      const std::int32_t i = waiting.back();
      waiting.pop_back();
      visit(i);
      for (std::int32_t j = child_[i]; j >= 0; j = sibling_[j]) waiting.push_back(j);
    }
  }

 private:
  std::vector<std::int32_t> child_, sibling_;  // each item is linked to its first child and its next sibling
  ComesBefore comes_before_;
};

}  // namespace agglo
