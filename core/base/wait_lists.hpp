// Wait lists: for each cluster y, a list of the clusters that wait until y merges.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace agglo {

// Doubly linked lists, one per cluster. A cluster waits for at most one other cluster.
class WaitLists {
 public:
  void resize(std::int64_t n) { waits_.resize(n); }

  // Returns a cluster that waits for y. If no cluster waits for y, returns kNoCluster.
  Id first(Id y) const { return waits_[y].first; }

  // Makes x wait for y. If x already waits for another cluster, x stops waiting for that cluster.
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

  // Removes x from the wait list that contains x. If x waits for no cluster, nothing changes.
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
    Id first = kNoCluster;                        // the first cluster that waits for this one
    Id previous = kNoCluster, next = kNoCluster;  // neighbours in the wait list that contains this cluster
    bool is_first = false;  // if true, `previous` is the cluster that this cluster waits for
  };
  std::vector<Wait> waits_;
};

}  // namespace agglo
