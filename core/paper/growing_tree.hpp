// A binary tree to which leaves are added one by one. Subtrees can be moved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace agglo::paper {

// Nodes 0..n-1 are the leaves, even before they are added. Nodes n..2n-2 are the inner nodes.
// Inner nodes are numbered in order of their first use. All nodes in the tree satisfy these invariants:
//  1. An inner node has two children, and is the parent of both.
//  2. Only the root has parent -1.
// After a move, the caller must call `resize` for all ancestors whose number of leaves has changed.
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

  // Makes the first leaf the root.
  void set_root(std::int32_t leaf) { root_ = leaf; }

  // Replaces node `at` by an inner node with the children `at` and v. Node v must not be in the tree yet.
  // The inner node is `spare`. If `spare` is -1, a new inner node is used.
  // Returns the inner node. The sizes of its ancestors are not updated.
  std::int32_t insert_beside(std::int32_t at, std::int32_t v, std::int32_t spare = -1) {
    const std::int32_t node = spare < 0 ? next_++ : spare;
    replace(at, node);
    child_[node] = {at, v};
    parent_[at] = parent_[v] = node;
    resize(node);
    return node;
  }

  // Removes v and its parent from the tree. The sibling of v takes the place of the parent.
  // Returns the removed parent. It can be passed to insert_beside as `spare`.
  std::int32_t detach(std::int32_t v) {
    const std::int32_t over = parent_[v], other = sibling(v);
    replace(over, other);
    parent_[v] = parent_[over] = -1;
    child_[over] = {-1, -1};
    return over;
  }

  // Swaps the subtrees of nodes a and b. Neither node may be an ancestor of the other.
  void exchange(std::int32_t a, std::int32_t b) {
    const std::int32_t parent_of_a = parent_[a], parent_of_b = parent_[b];
    auto& place_a = child_[parent_of_a].first == a ? child_[parent_of_a].first : child_[parent_of_a].second;
    auto& place_b = child_[parent_of_b].first == b ? child_[parent_of_b].first : child_[parent_of_b].second;
    std::swap(place_a, place_b);
    parent_[a] = parent_of_b;
    parent_[b] = parent_of_a;
  }

  void resize(std::int32_t v) { size_[v] = size_[left(v)] + size_[right(v)]; }

  // Makes v a leaf by removing its children.
  void make_leaf(std::int32_t v) { child_[v] = {-1, -1}; }

  // Calls each(leaf) for the leaves below v. Stops at the first call that returns false.
  // Returns whether all calls returned true.
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

  // Renumbers the inner nodes such that children come before their parents. Returns the parent of each node.
  // Sets new_id[v] to the new number of v, or to -1 if v is not in the tree.
  std::vector<std::int32_t> to_parents(std::vector<std::int32_t>& new_id) const {
    new_id.assign(parent_.size(), -1);
    std::vector<std::int32_t> inner, waiting{root_};
    while (!waiting.empty()) {
      const std::int32_t node = waiting.back();
      waiting.pop_back();
      if (node >= leaves_) inner.push_back(node);
      if (is_leaf(node)) continue;
      waiting.push_back(left(node));
      waiting.push_back(right(node));
    }
    for (std::int32_t leaf = 0; leaf < leaves_; ++leaf) new_id[leaf] = leaf;
    const std::int32_t last = leaves_ + static_cast<std::int32_t>(inner.size()) - 1;
    for (std::size_t s = 0; s < inner.size(); ++s) new_id[inner[s]] = last - static_cast<std::int32_t>(s);
    std::vector<std::int32_t> up(leaves_ + inner.size(), -1);
    for (std::size_t v = 0; v < parent_.size(); ++v)
      if (new_id[v] >= 0 && parent_[v] >= 0) up[new_id[v]] = new_id[parent_[v]];
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

}  // namespace agglo::paper
