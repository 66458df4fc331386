// The lists of clusters' neighbours, and how they are combined.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace agglo {

using Id = std::int32_t;  // a point, or the cluster whose smallest point it is
constexpr Id kNobody = -1;

// A cluster's neighbours with the statistics of the edges to them, in one block of memory.
template <class Stat>
class List {
 public:
  List() = default;
  List(std::span<const Id> ids, const std::vector<Stat>& stats) : length_(static_cast<Id>(ids.size())) {
    block_.reset(static_cast<std::byte*>(std::malloc(ids.size() * (sizeof(Stat) + sizeof(Id)) + 1)));
    if (!block_) throw std::bad_alloc();
    if (ids.empty()) return;  // memcpy takes no null pointers, not even for no bytes
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

// Neighbours being combined: a small hash table over dense columns.
template <class Linkage>
class Gather {
 public:
  using Stat = typename Linkage::Stat;

  void start(std::int64_t entries) {
    ids.clear();
    stats.clear();
    bits_ = std::max(4, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(entries))) + 1);
    const std::size_t slots = std::size_t{1} << bits_;
    if (table_.size() < slots) table_.resize(slots);
    std::fill_n(table_.begin(), slots, kNobody);
  }

  void add(Id id, Stat stat) {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    std::size_t slot = (static_cast<std::uint32_t>(id) * 2654435769u) >> (32 - bits_);
    for (;; slot = (slot + 1) & mask) {
      const Id place = table_[slot];
      if (place == kNobody) {
        table_[slot] = static_cast<Id>(ids.size());
        ids.push_back(id);
        stats.push_back(stat);
        return;
      }
      if (ids[place] == id) return Linkage::combine(stats[place], stat);
    }
  }

  // Drops all neighbours but those that `stays` is true of; nothing can be added after it.
  template <class Stays>
  void keep(const Stays& stays) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!stays(ids[k])) continue;
      ids[kept] = ids[k];
      stats[kept++] = stats[k];
    }
    ids.resize(kept);
    stats.resize(kept);
  }

  std::vector<Id> ids;
  std::vector<Stat> stats;
  std::vector<Id> pending;  // clusters whose lists have to be read

 private:
  std::vector<Id> table_;
  int bits_ = 0;
};

}  // namespace agglo
