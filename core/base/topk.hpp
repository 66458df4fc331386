// Top-k selection: keep the k smallest of many items. Items are compared by operator<.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace agglo {

// Keep the k smallest items of a vector, and sort them in increasing order.
// If the vector has fewer than k items, keep all items.
template <class T>
void keep_first(std::vector<T>& items, std::int64_t k) {
  if (static_cast<std::int64_t>(items.size()) > k) {
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
    items.resize(k);
  }
  std::sort(items.begin(), items.end());
}

// A container that keeps the k smallest of all items offered so far. k must be at least 1.
// The items form a heap whose top is the largest item.
template <class T>
class TopK {
 public:
  explicit TopK(std::int64_t k) : k_(k) { heap_.reserve(k); }

  bool is_full() const { return static_cast<std::int64_t>(heap_.size()) == k_; }
  // Return the largest of the k kept items. The container must be full.
  const T& last() const { return heap_.front(); }

  void clear() { heap_.clear(); }

  void offer(const T& item) {
    if (is_full()) {
      if (!(item < last())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(item);
    std::push_heap(heap_.begin(), heap_.end());
  }

  // Sort the kept items in increasing order and return them. Afterwards, only clear() may be called.
  const std::vector<T>& sort() {
    std::sort_heap(heap_.begin(), heap_.end());
    return heap_;
  }

 private:
  const std::int64_t k_;
  std::vector<T> heap_;
};

}  // namespace agglo
