// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "lib/base/bootstrap.hpp"
#include "lib/exec/block.hpp"
#include "lib/exec/team.hpp"

namespace ferry::core {

// Turns the ranks of a communicator into a team, without ever blocking: one exchange over the
// bootstrap, started by the constructor, then votes through the memory that was shared. Either
// every rank ends with a shared team or every rank ends without one.
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
  // The rank whose vote is missing, or -1 as long as any may be; for people.
  [[nodiscard]] int waits_for() const { return waits_for_; }

 private:
  void make_card(const BlockLayout& lane);
  void attach_all();
  void vote(std::uint32_t bits, const std::string& reason);
  Poll count_votes();
  void finish(bool shared, std::string reason);

  Bootstrap& bootstrap_;
  Team& team_;
  // The exchange in flight reads and writes these.
  struct Cards {
    RankCard mine;
    std::vector<RankCard> all;
  };
  std::unique_ptr<Cards> cards_;
  std::byte* block_ = nullptr;
  bool exchanged_ = false;
  bool finished_ = false;
  int waits_for_ = -1;
};

} // namespace ferry::core
