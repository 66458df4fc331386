// A binary tree that grows by a leaf at a time and is rearranged as it grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace agglo {

// Nodes 0..n-1 are the leaves, in the tree or still to come; inner nodes are n..2n-2, in the order in which
// they are first used. Invariants, for all nodes of the tree: an inner node has two children, whose parent it
// is; the root alone has parent -1. Sizes are those of the children's sum wherever `resize` was called, which
// callers do after they have moved something.
class GrowingTree {
 public:
  explicit GrowingTree(std::int64_t n)
      : leaves_(static_cast<std::int32_t>(n)),
        parent_(std::max<std::int64_t>(1, 2 * n - 1), -1),
        child_(parent_.size(), {-1, -1}),
        size_(parent_.size(), 1),
        next_(leaves_) {}

  std::int32_t root() const { return root_; }
  std::int32_t parent(std::int32_t v) const { return parent_[v]; }
  std::int32_t left(std::int32_t v) const { return child_[v].first; }
  std::int32_t right(std::int32_t v) const { return child_[v].second; }
  std::int32_t size(std::int32_t v) const { return size_[v]; }
  bool is_leaf(std::int32_t v) const { return child_[v].first < 0; }
  std::int32_t sibling(std::int32_t v) const {
    const auto& [a, b] = child_[parent_[v]];
    return a == v ? b : a;
  }

  // Makes a first leaf the whole tree.
  void plant(std::int32_t leaf) { root_ = leaf; }

  // Puts a node in the place of `at`, with `at` and v, which is in no tree, as children. The node is `spare`,
  // or a new one if that is -1. Sizes above it are as they were.
  std::int32_t join(std::int32_t at, std::int32_t v, std::int32_t spare = -1) {
    const std::int32_t node = spare < 0 ? next_++ : spare;
    replace(at, node);
    child_[node] = {at, v};
    parent_[at] = parent_[v] = node;
    resize(node);
    return node;
  }

  // Takes v out, and its parent, which is returned for another use; v's sibling is where the parent was.
  std::int32_t take_out(std::int32_t v) {
    const std::int32_t over = parent_[v], stays = sibling(v);
    replace(over, stays);
    parent_[v] = parent_[over] = -1;
    child_[over] = {-1, -1};
    return over;
  }

  // Exchanges the places of two nodes, neither of which is above the other.
  void exchange(std::int32_t a, std::int32_t b) {
    const std::int32_t over_a = parent_[a], over_b = parent_[b];
    auto& place_a = child_[over_a].first == a ? child_[over_a].first : child_[over_a].second;
    auto& place_b = child_[over_b].first == b ? child_[over_b].first : child_[over_b].second;
    std::swap(place_a, place_b);
    parent_[a] = over_b;
    parent_[b] = over_a;
  }

  void resize(std::int32_t v) { size_[v] = size_[left(v)] + size_[right(v)]; }

  // Makes leaves of what is below v, which must be in no other place: v has them, but no children.
  void cut_below(std::int32_t v) { child_[v] = {-1, -1}; }

  // Calls each(leaf) for what is below v and has no children, until that returns false; whether none did.
  template <class Each>
  bool leaves(std::int32_t v, const Each& each) const {
    std::vector<std::int32_t> waiting{v};
    while (!waiting.empty()) {
      const std::int32_t node = waiting.back();
      waiting.pop_back();
      if (is_leaf(node)) {
        if (!each(node)) return false;
      } else {
        waiting.push_back(right(node));
        waiting.push_back(left(node));
      }
    }
    return true;
  }

  // The parents once inner nodes are named so that children come before their parents; n leaves and `used`
  // inner nodes, the root last. name[v] is the name of a node, -1 if it is in no tree.
  std::vector<std::int32_t> upwards(std::vector<std::int32_t>& name) const {
    name.assign(parent_.size(), -1);
    std::vector<std::int32_t> inner, waiting{root_};
    while (!waiting.empty()) {
      const std::int32_t node = waiting.back();
      waiting.pop_back();
      if (node >= leaves_) inner.push_back(node);
      if (is_leaf(node)) continue;
      waiting.push_back(left(node));
      waiting.push_back(right(node));
    }
    for (std::int32_t leaf = 0; leaf < leaves_; ++leaf) name[leaf] = leaf;
    const std::int32_t last = leaves_ + static_cast<std::int32_t>(inner.size()) - 1;
    for (std::size_t s = 0; s < inner.size(); ++s) name[inner[s]] = last - static_cast<std::int32_t>(s);
    std::vector<std::int32_t> up(leaves_ + inner.size(), -1);
    for (std::size_t v = 0; v < parent_.size(); ++v)
      if (name[v] >= 0 && parent_[v] >= 0) up[name[v]] = name[parent_[v]];
    return up;
  }

 private:
  void replace(std::int32_t old, std::int32_t now) {
    const std::int32_t over = parent_[old];
    parent_[now] = over;
    if (over < 0)
      root_ = now;
    else
      (child_[over].first == old ? child_[over].first : child_[over].second) = now;
  }

  std::int32_t leaves_;
  std::vector<std::int32_t> parent_;
  std::vector<std::pair<std::int32_t, std::int32_t>> child_;
  std::vector<std::int32_t> size_;
  std::int32_t next_, root_ = -1;
};

}  // namespace agglo
