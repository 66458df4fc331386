// Selection of the k first items of many, by operator<.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace agglo {

// Keep the k first items of a vector, in increasing order, or all if there are fewer.
template <class T>
void keep_first(std::vector<T>& items, std::int64_t k) {
  if (static_cast<std::int64_t>(items.size()) > k) {
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
    items.resize(k);
  }
  std::sort(items.begin(), items.end());
}

// The k first of all items offered so far, as a heap with the last of them on top. k >= 1.
template <class T>
class TopK {
 public:
  explicit TopK(std::int64_t k) : k_(k) { heap_.reserve(k); }

  bool is_full() const { return static_cast<std::int64_t>(heap_.size()) == k_; }
  // The last of the k items. Only if is_full().
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
