// Top-k selection: the k smallest items by operator<.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace agglo {

// Keep the k smallest items of a vector, in increasing order. If there are fewer, keep all items.
template <class T>
void keep_first(std::vector<T>& items, std::int64_t k) {
  if (static_cast<std::int64_t>(items.size()) > k) {
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
    items.resize(k);
  }
  std::sort(items.begin(), items.end());
}

// The k smallest of all items offered so far, k >= 1. They are a heap with the largest on top.
template <class T>
class TopK {
 public:
  explicit TopK(std::int64_t k) : k_(k) { heap_.reserve(k); }

  bool is_full() const { return static_cast<std::int64_t>(heap_.size()) == k_; }
  // Return the largest of the k items. Requires is_full().
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

  // Sort the items in increasing order and return them. Only clear() may be called afterwards.
  const std::vector<T>& sort() {
    std::sort_heap(heap_.begin(), heap_.end());
    return heap_;
  }

 private:
  const std::int64_t k_;
  std::vector<T> heap_;
};

}  // namespace agglo
