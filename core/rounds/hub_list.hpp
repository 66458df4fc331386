// The neighbours of a hub, sorted by linkage. A hub is a cluster with many neighbours.
#pragma once

#include <set>
#include <unordered_map>

#include "base/ids.hpp"

namespace agglo {

// The neighbours of a hub, sorted from the closest to the farthest by Entry::key.
// If `ties_by_size` is true, neighbours with equal keys are sorted by size, then by statistics, then by id.
// If `ties_by_size` is false, neighbours with equal keys are sorted by id.
template <class Stat>
class HubList {
 public:
  explicit HubList(bool ties_by_size) : order_(Closer{ties_by_size}) {}

  // One neighbour of the hub. Apart from rounding errors, a larger `key` means a larger linkage.
  // For linkages of kind Growth::once, `key` may be too large if the hub has grown since the insertion.
  struct Entry {
    double key;
    double size;
    Stat stat;
    Id id, to;
  };

  // Sorts neighbours from the closest to the farthest.
  struct Closer {
    bool ties_by_size;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.key != b.key) return a.key > b.key;
      if (ties_by_size) {
        if (a.size != b.size) return a.size < b.size;
        if (a.stat != b.stat) return a.stat < b.stat;
      }
      return a.id < b.id;
    }
  };
  using Order = std::set<Entry, Closer>;

  std::size_t size() const { return position_.size(); }
  const Order& order() const { return order_; }

  // Returns the entry of neighbour y, or null if y is not in the list.
  const Entry* find(Id y) const {
    const auto found = position_.find(y);
    return found == position_.end() ? nullptr : &*found->second;
  }

  // Inserts an entry. If the list already has an entry for the same neighbour, replaces that entry.
  void put(const Entry& entry) {
    const auto [found, is_new] = position_.try_emplace(entry.to);
    if (!is_new) order_.erase(found->second);
    found->second = order_.insert(entry).first;
  }

  void erase(Id y) {
    const auto found = position_.find(y);
    order_.erase(found->second);
    position_.erase(found);
  }

 private:
  Order order_;
  std::unordered_map<Id, typename Order::iterator> position_;  // indexed by neighbour
};

}  // namespace agglo
