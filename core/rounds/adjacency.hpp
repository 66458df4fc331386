// Neighbour lists of clusters, and the hash table that combines them.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace agglo {

// The neighbours of one cluster and the edge statistics of each, in one block of memory.
template <class Stat>
class NeighborList {
 public:
  NeighborList() = default;
  NeighborList(std::span<const Id> ids, const std::vector<Stat>& stats)
      : length_(static_cast<Id>(ids.size())) {
    block_.reset(static_cast<std::byte*>(std::malloc(ids.size() * (sizeof(Stat) + sizeof(Id)) + 1)));
    if (!block_) throw std::bad_alloc();
    if (ids.empty()) return;  // memcpy does not accept null pointers, even for 0 bytes
    std::memcpy(block_.get(), stats.data(), ids.size() * sizeof(Stat));
    std::memcpy(block_.get() + ids.size() * sizeof(Stat), ids.data(), ids.size() * sizeof(Id));
  }
  explicit operator bool() const { return block_ != nullptr; }
  std::int64_t size() const { return length_; }
  const Stat* stats() const { return reinterpret_cast<const Stat*>(block_.get()); }
  const Id* ids() const { return reinterpret_cast<const Id*>(block_.get() + length_ * sizeof(Stat)); }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  std::unique_ptr<std::byte[], Free> block_;
  Id length_ = 0;
};

// A hash table that combines several neighbour lists into one entry per neighbour.
// `ids` and `stats` list the neighbours in order of insertion.
template <class Linkage>
class NeighborTable {
 public:
  using Stat = typename Linkage::Stat;

  // Empties the table and reserves memory for the given number of entries.
  void reset(std::int64_t entries) {
    ids.clear();
    stats.clear();
    bits_ = std::max(4, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(entries))) + 1);
    const std::size_t slots = std::size_t{1} << bits_;
    if (table_.size() < slots) table_.resize(slots);
    std::fill_n(table_.begin(), slots, kNoCluster);
  }

  void add(Id id, Stat stat) {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    std::size_t slot = (static_cast<std::uint32_t>(id) * 2654435769u) >> (32 - bits_);
    for (;; slot = (slot + 1) & mask) {
      const Id row = table_[slot];
      if (row == kNoCluster) {
        table_[slot] = static_cast<Id>(ids.size());
        ids.push_back(id);
        stats.push_back(stat);
        return;
      }
      if (ids[row] == id) return Linkage::combine(stats[row], stat);
    }
  }

  // Removes the neighbours for which keeps(id) is false. Do not call add() afterwards.
  template <class Keeps>
  void filter(const Keeps& keeps) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!keeps(ids[k])) continue;
      ids[kept] = ids[k];
      stats[kept++] = stats[k];
    }
    ids.resize(kept);
    stats.resize(kept);
  }

  std::vector<Id> ids;
  std::vector<Stat> stats;
  std::vector<Id> pending;  // scratch memory of the caller: clusters whose lists it has to read

 private:
  std::vector<Id> table_;
  int bits_ = 0;
};

}  // namespace agglo
