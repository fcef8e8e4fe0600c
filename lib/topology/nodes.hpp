// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "lib/config/config.hpp"

namespace ferry::core {

// Which ranks of a communicator share memory; alike on all ranks. Nodes are numbered by their
// lowest rank.
struct NodeMap {
  std::vector<int> node_of; // of each rank
  std::vector<int> index_of; // of each rank, within its node
  std::vector<std::vector<int>> members; // ranks of each node, ascending

  [[nodiscard]] int nodes() const { return static_cast<int>(members.size()); }
  [[nodiscard]] int ranks() const { return static_cast<int>(node_of.size()); }
  [[nodiscard]] int node(int rank) const { return node_of[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int index(int rank) const { return index_of[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size(int node) const {
    return static_cast<int>(members[static_cast<std::size_t>(node)].size());
  }
  [[nodiscard]] int member(int node, int index) const {
    return members[static_cast<std::size_t>(node)][static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int most_members() const;
};

// Ranks with equal labels form a node.
[[nodiscard]] NodeMap make_node_map(const std::vector<int>& labels);

// What each rank reached, as one bit for each rank: 64 in a word, words_for(ranks) words a rank.
class Reach {
 public:
  explicit Reach(int ranks)
      : words_(words_for(ranks)), bits_(words_ * static_cast<std::size_t>(ranks)) {}
  [[nodiscard]] static std::size_t words_for(int ranks) {
    return (static_cast<std::size_t>(ranks) + 63) / 64;
  }
  [[nodiscard]] std::uint64_t* of(int rank) { return bits_.data() + at(rank); }
  [[nodiscard]] std::size_t bytes_of_rank() const { return words_ * sizeof(std::uint64_t); }
  void set(int rank, int peer);
  [[nodiscard]] bool both(int a, int b) const { return has(a, b) && has(b, a); }

 private:
  [[nodiscard]] std::size_t at(int rank) const { return words_ * static_cast<std::size_t>(rank); }
  [[nodiscard]] bool has(int rank, int peer) const;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// A rank joins the first node all of whose ranks reach it and are reached by it: whatever the
// kernel permits, ranks of a node can share. One label for each rank.
[[nodiscard]] std::vector<int> group_by_reach(const Reach& reach, int ranks);

// The node of a rank that FERRY_NODES pretends; 0 for real ones.
[[nodiscard]] int pretended_node(const NodeChoice& choice, int rank, int ranks);

} // namespace ferry::core
