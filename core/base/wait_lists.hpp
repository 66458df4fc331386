// Lists of the clusters that wait for each cluster to merge.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace agglo {

// Doubly linked lists, one per cluster. A cluster waits for at most one other.
class WaitLists {
 public:
  void resize(std::int64_t n) { waits_.resize(n); }

  // Returns one of the clusters that wait for y, or kNoCluster.
  Id first(Id y) const { return waits_[y].first; }

  // Makes x wait for y instead of any other cluster.
  void add(Id x, Id y) {
    remove(x);
    const Id next = waits_[y].first;
    waits_[x].next = next;
    waits_[x].previous = y;
    waits_[x].is_first = true;
    if (next != kNoCluster) {
      waits_[next].previous = x;
      waits_[next].is_first = false;
    }
    waits_[y].first = x;
  }

  // Makes x wait for no cluster.
  void remove(Id x) {
    Wait& wait = waits_[x];
    if (wait.previous == kNoCluster) return;
    (wait.is_first ? waits_[wait.previous].first : waits_[wait.previous].next) = wait.next;
    if (wait.next != kNoCluster) {
      waits_[wait.next].previous = wait.previous;
      waits_[wait.next].is_first = wait.is_first;
    }
    wait.previous = wait.next = kNoCluster;
  }

 private:
  struct Wait {
    Id first = kNoCluster;                        // of the clusters that wait for this one
    Id previous = kNoCluster, next = kNoCluster;  // among the clusters that wait for the same one
    bool is_first = false;                        // then `previous` is the cluster that it waits for
  };
  std::vector<Wait> waits_;
};

}  // namespace agglo
