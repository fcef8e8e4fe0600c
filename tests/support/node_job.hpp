// SPDX-License-Identifier: MIT
// Ranks on several nodes in one thread: their stages, their exchanges, and blocks of patterns.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "collectives/nodes.hpp"
#include "lib/exec/node_run.hpp"
#include "post_office.hpp"

namespace ferry::test {

using core::Exchanges;
using core::NodeBlocks;
using core::NodeChannel;
using core::NodeLimits;
using core::NodeMap;
using core::NodePlan;
using core::NodeRun;
using core::Operation;

// Byte `at` of the block from one rank for another; broadcasts and allgathers have no receiver.
inline std::byte node_byte(int call, int from, int to, std::uint64_t at) {
  std::uint64_t x = at * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(call) * 1000003u;
  x ^= static_cast<std::uint64_t>(from) * 7919u + static_cast<std::uint64_t>(to) * 104729u;
  return static_cast<std::byte>((x ^ (x >> 31)) >> 5);
}

struct NodeCase {
  Operation operation = Operation::alltoall;
  int root = 0;
  std::vector<std::uint64_t> blocks;
  NodeLimits limits;
};

// The blocks of one rank are patterns on the one side, and are compared on the other.
class PatternBlocks final : public NodeBlocks {
 public:
  PatternBlocks(const NodeCase& wanted, int call, int rank, int ranks)
      : case_(wanted), call_(call), rank_(rank), got_(static_cast<std::size_t>(ranks)) {
    for (int from = 0; from < ranks; ++from) {
      if (comes(from)) got_[static_cast<std::size_t>(from)].resize(size(from));
    }
  }
  void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const override {
    const int receiver = case_.operation == Operation::alltoall ? rank : -1;
    for (std::uint64_t i = 0; i < bytes; ++i) to[i] = node_byte(call_, rank_, receiver, skip + i);
  }
  void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) override {
    auto& marks = got_[static_cast<std::size_t>(rank)];
    const int receiver = case_.operation == Operation::alltoall ? rank_ : -1;
    for (std::uint64_t i = 0; i < bytes; ++i) {
      if (skip + i >= marks.size()) {
        wrong_ = true;
        return;
      }
      wrong_ = wrong_ || marks[skip + i] || from[i] != node_byte(call_, rank, receiver, skip + i);
      marks[skip + i] = true;
    }
  }
  // Every byte of every block of others came once, and right.
  [[nodiscard]] bool complete() const {
    if (wrong_) return false;
    return std::all_of(got_.begin(), got_.end(), [](const std::vector<bool>& marks) {
      return std::find(marks.begin(), marks.end(), false) == marks.end();
    });
  }

 private:
  [[nodiscard]] bool comes(int from) const {
    if (case_.operation == Operation::gather && rank_ != case_.root) return false;
    if (case_.operation != Operation::broadcast) return from != rank_;
    return from == case_.root && rank_ != case_.root;
  }
  [[nodiscard]] std::uint64_t size(int from) const {
    return case_.blocks.size() == 1 ? case_.blocks[0]
                                    : case_.blocks[static_cast<std::size_t>(from)];
  }
  const NodeCase& case_;
  int call_;
  int rank_;
  std::vector<std::vector<bool>> got_; // bytes of the block from each rank
  bool wrong_ = false;
};

// All ranks of a job, with stages that live as long as it.
class NodeJob {
 public:
  NodeJob(NodeMap map, std::uint64_t stage_bytes, std::uint64_t seed)
      : map_(std::move(map)), random_(seed) {
    const auto lines = static_cast<std::size_t>(NodeChannel::bytes_for(stage_bytes) / 64 + 1);
    memory_.resize(static_cast<std::size_t>(map_.ranks()), std::vector<Line>(lines));
    for (int rank = 0; rank < map_.ranks(); ++rank) {
      std::vector<std::byte*> node;
      for (int mate : map_.members[static_cast<std::size_t>(map_.node(rank))]) {
        node.push_back(memory_[static_cast<std::size_t>(mate)].front().bytes);
      }
      channels_.emplace_back(node, map_.index(rank), [](int) {});
    }
  }

  // Empty, or what went wrong. `tamper` may change the plan of each rank; `late` begins when all
  // others can get no further, none of which may have left.
  std::string run(
      const NodeCase& wanted, const std::function<void(NodePlan&)>& tamper = {}, int late = -1) {
    Call call;
    std::string fault = prepare(wanted, tamper, call);
    if (!fault.empty()) return fault;
    for (int rank = 0; rank < map_.ranks(); ++rank) begin(call, rank);
    const auto progress = [&](std::size_t at) { return call.runs[at].progress(); };
    fault = drive(progress, late);
    return fault.empty() ? judge(call) : fault;
  }

  // Calls in a row: a rank that has ended one begins the next, wherever its mates are.
  std::string run_row(const std::vector<NodeCase>& wanted) {
    std::vector<Call> calls(wanted.size());
    std::vector<std::size_t> now(static_cast<std::size_t>(map_.ranks()), 0);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (std::string fault = prepare(wanted[i], {}, calls[i]); !fault.empty()) return fault;
    }
    for (int rank = 0; rank < map_.ranks(); ++rank) begin(calls.front(), rank);
    std::string fault = drive([&](std::size_t at) {
      if (calls[now[at]].runs[at].progress() == core::Poll::pending) return core::Poll::pending;
      if (now[at] + 1 == calls.size()) return core::Poll::ready;
      begin(calls[++now[at]], static_cast<int>(at));
      return core::Poll::pending;
    });
    for (std::size_t i = 0; i < calls.size() && fault.empty(); ++i) fault = judge(calls[i]);
    return fault;
  }

  [[nodiscard]] PostOffice::Traffic traffic() { return office_.traffic(); }
  [[nodiscard]] std::size_t rounds() const { return rounds_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  // One collective of all ranks.
  struct Call {
    std::vector<NodePlan> plans;
    std::vector<Exchanges> exchanges;
    std::vector<std::unique_ptr<PatternBlocks>> blocks;
    std::vector<NodeRun> runs;
  };

  std::string prepare(
      const NodeCase& wanted, const std::function<void(NodePlan&)>& tamper, Call& call) {
    ++call_;
    const int ranks = map_.ranks();
    call.runs.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      call.plans.push_back(core::plan_nodes(
          {wanted.operation, rank, &map_, wanted.root, wanted.blocks, wanted.limits}));
      const NodePlan& plan = call.plans.back();
      const NodePlan& first = call.plans.front();
      if (plan.rounds.size() != first.rounds.size() || plan.shapes.size() != first.shapes.size() ||
          plan.stage_bytes != first.stage_bytes) {
        return fmt::format("rank {} has another plan than rank 0", rank);
      }
      if (plan.stage_bytes > wanted.limits.stage_bytes) return "a stage beyond the limit";
      if (tamper) tamper(call.plans.back());
      call.blocks.push_back(std::make_unique<PatternBlocks>(wanted, call_, rank, ranks));
    }
    rounds_ = call.plans.front().rounds.size();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      int number = exchange_;
      call.exchanges.push_back(core::prepare_shapes(
          call.plans[at], channels_[at].stage(channels_[at].me()),
          [&](const auto& sends, const auto& receives) {
            return std::make_unique<PostExchange>(office_, number++, rank, sends, receives);
          }));
    }
    exchange_ += static_cast<int>(call.plans.front().shapes.size());
    return {};
  }

  void begin(Call& call, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    call.runs[at].begin(call.plans[at], channels_[at], *call.blocks[at], call.exchanges[at]);
  }

  std::string judge(const Call& call) {
    for (std::size_t at = 0; at < call.blocks.size(); ++at) {
      if (!call.blocks[at]->complete()) return fmt::format("rank {} did not get all blocks", at);
      for (const auto& one : call.exchanges[at]) {
        if (static_cast<const PostExchange&>(*one).misfit()) return "sent and received differ";
      }
    }
    return office_.empty() ? "" : "a message that nobody takes";
  }

  // Ranks make steps in random order, some far ahead of others.
  template <class Progress>
  std::string drive(const Progress& progress, int late = -1) {
    const auto ranks = static_cast<std::size_t>(map_.ranks());
    std::vector<std::size_t> open(ranks);
    std::iota(open.begin(), open.end(), 0);
    constexpr int kLooks = 50; // more than a barrier has rounds
    for (int look = 0; late >= 0 && look < kLooks; ++look) {
      for (std::size_t at = 0; at < ranks; ++at) {
        if (static_cast<int>(at) == late || progress(at) == core::Poll::pending) continue;
        return fmt::format("rank {} leaves before rank {} has entered", at, late);
      }
    }
    std::size_t idle = 0;
    while (!open.empty()) {
      std::shuffle(open.begin(), open.end(), random_);
      const std::size_t before = open.size();
      const std::size_t part = 1 + random_() % open.size();
      std::size_t kept = 0;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (i < part && progress(open[i]) == core::Poll::ready) continue;
        open[kept++] = open[i];
      }
      open.resize(kept);
      idle = open.size() == before && part == before ? idle + 1 : 0;
      // With nobody else to wait for, a full look at all ranks that changes nothing is the end.
      if (idle > 10000) return fmt::format("{} ranks wait for ever", open.size());
    }
    return {};
  }

  NodeMap map_;
  std::mt19937_64 random_;
  PostOffice office_;
  std::vector<std::vector<Line>> memory_;
  std::vector<NodeChannel> channels_;
  int call_ = 0;
  int exchange_ = 0;
  std::size_t rounds_ = 0;
};

} // namespace ferry::test
