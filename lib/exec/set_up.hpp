// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bootstrap.hpp"
#include "lib/exec/block.hpp"
#include "lib/exec/team.hpp"
#include "lib/topology/nodes.hpp"

namespace ferry::core {

// What a rank has for collectives over nodes.
struct NodeResources {
  NodeMap map;
  std::byte* block = nullptr; // own; null on a node of one rank
  std::vector<std::uint64_t> blocks; // offset of each rank's block in its heap
};

// Turns the ranks of a communicator into a team, without ever blocking: one exchange over the
// bootstrap, started by the constructor, then votes through the memory that was shared. Either
// every rank ends with a shared team or every rank ends without one. In the second case a further
// exchange tells who reached whom, and ranks that all reach each other form nodes.
class SetUp {
 public:
  SetUp(Bootstrap& bootstrap, Team& team, const BlockLayout& lane);
  ~SetUp();
  SetUp(const SetUp&) = delete;
  SetUp& operator=(const SetUp&) = delete;

  // ready once the team is complete. Throws Failure, alike on all ranks, when they must not go on.
  [[nodiscard]] Poll progress();
  // Own lane block; the caller owns it from then on. Null when the team shares nothing.
  [[nodiscard]] std::byte* take_lane_block();
  // Nodes, where at least one has several ranks; the caller owns the block from then on.
  [[nodiscard]] std::optional<NodeResources> take_nodes();
  // No rank shares memory with another one, and every rank lets its blocking calls go to the MPI
  // below without Ferry. Alike on all ranks, since each tells all others.
  [[nodiscard]] bool lets_pass() const { return lets_pass_; }
  // The rank whose vote is missing, or -1 as long as any may be; for people.
  [[nodiscard]] int waits_for() const { return waits_for_; }

 private:
  // Exchanges in flight read and write these.
  struct Flight {
    RankCard mine;
    std::vector<RankCard> all;
    std::vector<std::uint64_t> reached; // what this rank reached, then words of ReachTail
    std::vector<std::uint64_t> all_reached;
  };

  void make_card(const BlockLayout& lane);
  void prepare_nodes();
  [[nodiscard]] bool same_node(int rank) const;
  [[nodiscard]] bool one_node() const;
  [[nodiscard]] std::string unusable() const;
  void attach_all();
  void vote(std::uint32_t bits, const std::string& reason);
  Poll count_votes();
  void begin_nodes(std::string reason);
  Poll form_nodes();
  void finish(bool shared, std::string reason);
  [[nodiscard]] bool may_pass() const;

  Bootstrap& bootstrap_;
  Team& team_;
  std::unique_ptr<Flight> flight_;
  std::unique_ptr<Exchange> nodes_exchange_;
  std::byte* block_ = nullptr;
  std::byte* node_block_ = nullptr;
  std::optional<NodeResources> nodes_;
  bool exchanged_ = false;
  bool forming_ = false; // nodes_exchange_ is under way
  bool finished_ = false;
  bool lets_pass_ = false;
  std::string why_unshared_;
  int waits_for_ = -1;
};

} // namespace ferry::core
