// Random trees for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tree/tree.hpp"

struct Tree {
  std::vector<std::int32_t> parent;
  std::vector<double> height;
  std::vector<std::int32_t> size;
  std::vector<std::int32_t> round;
  std::vector<std::int64_t> before, after;
  std::int64_t leaves = 0;

  agglo::TreeView view() const { return {parent, height, size, round}; }
};

// Returns a random tree with n leaves. Every round merges one random group of up to `width` clusters.
// If `chain`, every round merges the previous cluster and the next leaf instead.
inline Tree make_tree(std::int64_t n, std::int64_t width, bool chain, unsigned seed) {
  std::mt19937 random(seed);
  Tree tree;
  tree.leaves = n;
  tree.parent.assign(n, -1);
  tree.height.assign(n, 0.0);
  tree.size.assign(n, 1);
  tree.round.assign(n, 0);
  std::vector<std::int32_t> alive(n);
  for (std::int64_t i = 0; i < n; ++i) alive[i] = static_cast<std::int32_t>(n - 1 - i);
  double height = 0;
  while (alive.size() > 1) {
    const std::size_t most = std::min(alive.size(), static_cast<std::size_t>(width));
    const std::size_t group = chain ? 2 : 2 + random() % (most - 1);
    const auto id = static_cast<std::int32_t>(tree.parent.size());
    height += random() % 3;  // some heights are equal
    tree.before.push_back(static_cast<std::int64_t>(alive.size()));
    std::int32_t size = 0;
    for (std::size_t k = 0; k < group; ++k) {
      if (!chain) std::swap(alive[random() % alive.size()], alive.back());
      tree.parent[alive.back()] = id;
      size += tree.size[alive.back()];
      alive.pop_back();
    }
    alive.push_back(id);
    tree.after.push_back(static_cast<std::int64_t>(alive.size()));
    tree.parent.push_back(-1);
    tree.height.push_back(height);
    tree.size.push_back(size);
    tree.round.push_back(static_cast<std::int32_t>(tree.after.size()));
  }
  return tree;
}

// Returns the lowest common ancestor. Parents have larger ids than their children.
// So the smaller of two ids is replaced by its parent until both ids are equal.
inline std::int32_t common_ancestor(const Tree& tree, std::int32_t a, std::int32_t b) {
  while (a != b) (a < b ? a : b) = tree.parent[a < b ? a : b];
  return a;
}
