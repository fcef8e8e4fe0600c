// SPDX-License-Identifier: MIT
#include "lib/topology/nodes.hpp"

#include <algorithm>
#include <map>

namespace ferry::core {

int NodeMap::most_members() const {
  std::size_t most = 0;
  for (const auto& ranks : members) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

NodeMap make_node_map(const std::vector<int>& labels) {
  NodeMap map;
  std::map<int, int> number;
  for (std::size_t rank = 0; rank < labels.size(); ++rank) {
    const int node = number.emplace(labels[rank], map.nodes()).first->second;
    if (node == map.nodes()) map.members.emplace_back();
    auto& members = map.members[static_cast<std::size_t>(node)];
    map.node_of.push_back(node);
    map.index_of.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(rank));
  }
  return map;
}

void Reach::set(int rank, int peer) {
  of(rank)[static_cast<std::size_t>(peer) / 64] |= std::uint64_t{1} << (peer % 64);
}

bool Reach::has(int rank, int peer) const {
  return ((bits_[at(rank) + static_cast<std::size_t>(peer) / 64] >> (peer % 64)) & 1) != 0;
}

std::vector<int> group_by_reach(const Reach& reach, int ranks) {
  std::vector<std::vector<int>> groups;
  std::vector<int> labels;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto fits = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return std::all_of(
          group.begin(), group.end(), [&](int other) { return reach.both(rank, other); });
    });
    labels.push_back(static_cast<int>(fits - groups.begin()));
    if (fits == groups.end()) {
      groups.push_back({rank});
    } else {
      fits->push_back(rank);
    }
  }
  return labels;
}

int pretended_node(const NodeChoice& choice, int rank, int ranks) {
  switch (choice.order) {
    case NodeOrder::block:
      return static_cast<int>(static_cast<std::int64_t>(rank) * choice.nodes / ranks);
    case NodeOrder::scatter:
      return rank % choice.nodes;
    case NodeOrder::real:
      break;
  }
  return 0;
}

} // namespace ferry::core
