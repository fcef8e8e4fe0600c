// SPDX-License-Identifier: MIT
// Plans over nodes, run with their real executor by all ranks of a job in one thread, which drives
// them in an order drawn from a seed.
#include <doctest/doctest.h>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lib/exec/frame_size.hpp"
#include "support/node_job.hpp"

namespace {

using namespace ferry::core;
using ferry::test::NodeCase;
using ferry::test::NodeJob;
using ferry::test::PostOffice;

NodeMap blocks_of(const std::vector<int>& sizes) {
  std::vector<int> labels;
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    labels.insert(labels.end(), static_cast<std::size_t>(sizes[node]), static_cast<int>(node));
  }
  return make_node_map(labels);
}

NodeMap even(int nodes, int ranks_each) {
  return blocks_of(std::vector<int>(static_cast<std::size_t>(nodes), ranks_each));
}

NodeMap scattered(int ranks, int nodes) {
  std::vector<int> labels;
  for (int rank = 0; rank < ranks; ++rank) labels.push_back(rank % nodes);
  return make_node_map(labels);
}

NodeLimits limits_of(std::uint64_t stage, std::uint64_t small, std::uint64_t chunk) {
  return {stage, small, small, 0, chunk, small, 0};
}

// All operations and sizes on one map, twice each, on stages that stay.
void check_all(
    const NodeMap& map, const std::vector<std::uint64_t>& sizes, const NodeLimits& limits,
    std::uint64_t seed) {
  NodeJob job(map, limits.stage_bytes, seed);
  std::mt19937_64 random(seed);
  for (std::uint64_t size : sizes) {
    for (int again = 0; again < 2; ++again) {
      const int root = static_cast<int>(random() % static_cast<std::uint64_t>(map.ranks()));
      std::vector<std::uint64_t> uneven;
      for (int rank = 0; rank < map.ranks(); ++rank) uneven.push_back(random() % (size + 1));
      const NodeCase cases[] = {
          {Operation::alltoall, 0, {size}, limits},  {Operation::allgather, 0, {size}, limits},
          {Operation::allgather, 0, uneven, limits}, {Operation::broadcast, root, {size}, limits},
          {Operation::gather, root, {size}, limits}, {Operation::barrier, 0, {0}, limits},
      };
      for (const NodeCase& one : cases) {
        // A gather is one round or is not taken.
        const std::uint64_t all = size * static_cast<std::uint64_t>(map.ranks());
        if (one.operation == Operation::gather && all > limits.stage_bytes / 2) continue;
        CAPTURE(map.nodes());
        CAPTURE(map.ranks());
        CAPTURE(name_of(one.operation));
        CAPTURE(one.blocks.size());
        CAPTURE(size);
        CAPTURE(seed);
        REQUIRE(job.run(one) == "");
      }
    }
  }
}

} // namespace

TEST_CASE("nodes: every block arrives once, on 2 to 5 nodes with even, uneven, scattered ranks") {
  const NodeMap maps[] = {
      even(2, 1),
      even(2, 2),
      even(3, 1),
      even(4, 2),
      even(5, 3),
      blocks_of({1, 2}),
      blocks_of({3, 1}),
      blocks_of({1, 4, 2}),
      blocks_of({2, 1, 1, 3}),
      blocks_of({5, 1, 1, 1, 2}),
      scattered(4, 2),
      scattered(5, 2),
      scattered(7, 3),
      scattered(8, 5),
      make_node_map({2, 1, 0, 2, 1, 0, 0})};
  const std::vector<std::uint64_t> sizes = {0, 1, 7, 64, 65, 300};
  std::uint64_t seed = 1;
  for (const NodeMap& map : maps) {
    check_all(map, sizes, limits_of(1 << 16, 4096, 4096), seed++); // aggregated, one round
    check_all(map, sizes, limits_of(1 << 16, 0, 64), seed++); // pipelines
    check_all(map, sizes, limits_of(6144, 4096, 64), seed++); // stages that are short
  }
}

TEST_CASE("nodes: up to 64 nodes of 8 ranks") {
  std::uint64_t seed = 100;
  for (int nodes : {8, 16, 33, 64}) {
    for (int each : {1, 8}) {
      if (nodes * each > 64 && nodes != 64) continue;
      check_all(even(nodes, each), {3}, limits_of(1 << 20, 4096, 64), seed++);
      check_all(even(nodes, each), {5}, limits_of(1 << 20, 0, 2), seed++);
    }
  }
}

TEST_CASE("nodes: random maps") {
  for (std::uint64_t seed = 1000; seed < 1080; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<int> labels(2 + random() % 14);
    for (int& label : labels) label = static_cast<int>(random() % 6);
    const NodeMap map = make_node_map(labels);
    if (map.nodes() < 2) continue;
    const std::uint64_t chunk = 1 + random() % 100;
    const NodeLimits limits = limits_of(20000 + random() % 20000, random() % 2 * 4096, chunk);
    check_all(map, {random() % 400, 1 + random() % 40}, limits, seed);
  }
}

TEST_CASE("nodes: ranks that reach each other form nodes, whatever else they reach") {
  Reach reach(5);
  const auto link = [&](int a, int b) {
    reach.set(a, b);
    reach.set(b, a);
  };
  for (int rank = 0; rank < 5; ++rank) reach.set(rank, rank);
  link(0, 2);
  link(2, 4); // but not 0 and 4
  reach.set(1, 3); // one way only
  const NodeMap map = make_node_map(group_by_reach(reach, 5));
  CHECK(map.node_of == std::vector<int>{0, 1, 0, 2, 3});
  CHECK(map.index_of == std::vector<int>{0, 0, 1, 0, 0});
  Reach many(130);
  for (int a = 0; a < 130; ++a) {
    for (int b = 0; b < 130; ++b) {
      if (a % 2 == b % 2) many.set(a, b);
    }
  }
  CHECK(make_node_map(group_by_reach(many, 130)).members[1].back() == 129);
}

// What one call leaves in the stages must be read before the next one, of whatever shape, comes
// over it, with no wait for all in between.
TEST_CASE("nodes: calls in a row") {
  const NodeMap maps[] = {even(2, 2), even(3, 3), blocks_of({1, 4, 2}), scattered(7, 3)};
  for (const NodeMap& map : maps) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      std::mt19937_64 random(seed);
      const auto below = [&](int bound) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
      };
      const NodeLimits limits = limits_of(6144, random() % 2 * 4096, 64);
      constexpr Operation kOperations[] = {
          Operation::alltoall, Operation::allgather, Operation::broadcast, Operation::gather,
          Operation::barrier};
      std::vector<NodeCase> calls;
      for (int i = 0; i < 8; ++i) {
        const Operation operation = kOperations[below(5)];
        const bool rooted = operation == Operation::broadcast || operation == Operation::gather;
        const auto most = operation == Operation::gather ? 6144 / map.ranks() : 1000;
        const auto bytes = static_cast<std::uint64_t>(below(2) == 0 ? below(64) : below(most));
        const std::uint64_t block = operation == Operation::barrier ? 0 : bytes;
        calls.push_back({operation, rooted ? below(map.ranks()) : 0, {block}, limits});
      }
      CAPTURE(map.ranks());
      CAPTURE(seed);
      NodeJob job(map, limits.stage_bytes, seed);
      CHECK(job.run_row(calls) == "");
    }
  }
}

TEST_CASE("nodes: frames grow at once, shrink behind 16 calls, and are given up for 15") {
  FrameSize frames(4096);
  CHECK(frames.bytes() == 256);
  frames.note(257);
  CHECK(frames.bytes() == 1024);
  for (int call = 0; call < 15; ++call) frames.note(1);
  CHECK(frames.bytes() == 1024);
  frames.note(300); // the longest of the 16 counts
  CHECK(frames.bytes() == 1024);
  for (int call = 0; call < 16; ++call) frames.note(256);
  CHECK(frames.bytes() == 256);
  frames.note(4096);
  CHECK(frames.bytes() == 4096);
  CHECK_FALSE(frames.pass());
  frames.note(4097);
  CHECK(frames.bytes() == 256);
  for (int call = 0; call < 15; ++call) CHECK(frames.pass());
  CHECK_FALSE(frames.pass());
  frames.note(2000);
  CHECK(frames.shrink()); // too many ranks for frames of 4096
  CHECK(frames.most() == 1024);
  CHECK(frames.bytes() == 256);
  CHECK_FALSE(frames.shrink());
  FrameSize few(100);
  CHECK(few.bytes() == 100);
  few.note(101);
  CHECK(few.pass());
}

// One rank comes late: nobody may leave before it has come.
TEST_CASE("nodes: nobody leaves a barrier before all have entered") {
  const NodeMap maps[] = {even(2, 2), even(5, 2), blocks_of({1, 4, 2}), scattered(7, 3)};
  for (const NodeMap& map : maps) {
    for (int late = 0; late < map.ranks(); ++late) {
      NodeJob job(map, 4096, static_cast<std::uint64_t>(late) + 1);
      const NodeCase barrier = {Operation::barrier, 0, {0}, limits_of(4096, 0, 64)};
      CAPTURE(map.ranks());
      CAPTURE(late);
      CHECK(job.run(barrier, {}, late) == "");
      CHECK(job.run(barrier, {}, late) == "");
    }
  }
}

TEST_CASE("nodes: planted faults are found") {
  const NodeCase pipelines = {Operation::allgather, 0, {2000}, limits_of(1 << 14, 0, 64)};
  const NodeCase aggregated = {Operation::alltoall, 0, {2000}, limits_of(3000, 4096, 64)};
  struct Fault {
    const char* name;
    const NodeCase& wanted;
    std::function<void(NodePlan&)> plant;
  };
  const NodeCase barrier = {Operation::barrier, 0, {0}, limits_of(4096, 0, 64)};
  const NodeCase gather = {Operation::gather, 1, {40}, limits_of(4096, 4096, 64)};
  const Fault faults[] = {
      {"a barrier has a round too few", barrier,
       [](NodePlan& plan) {
         plan.rounds.pop_back();
         for (NodeRound& round : plan.rounds) round.arrivals.clear();
       }},
      {"a leader does not wait before it tells others", barrier,
       [](NodePlan& plan) { plan.rounds.front().sends_of_mates = false; }},
      {"blocks are gathered before they are there", gather,
       [](NodePlan& plan) { plan.rounds.front().sends_of_mates = false; }},
      {"regions are taken while they are in use", pipelines,
       [](NodePlan& plan) {
         for (NodeRound& round : plan.rounds) round.writes = 0;
       }},
      {"a leader does not wait for its mates", aggregated,
       [](NodePlan& plan) {
         for (NodeRound& round : plan.rounds) round.sends_of_mates = false;
       }},
      {"bytes are read before they arrive", aggregated,
       [](NodePlan& plan) {
         for (NodeRound& round : plan.rounds) {
           for (NodeCopy& copy : round.arrivals) copy.after = (copy.after + 1) % 2;
         }
       }},
      {"a copy begins a byte late", aggregated,
       [](NodePlan& plan) { ++plan.rounds.front().fills.front().offset; }},
      {"a copy is missing", pipelines,
       [](NodePlan& plan) { plan.rounds.back().locals.pop_back(); }},
      {"a message is a byte short", pipelines,
       [](NodePlan& plan) {
         for (NodePart& part : plan.shapes.back().receives) --part.bytes;
       }},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.name);
    bool found = false;
    for (std::uint64_t seed = 1; seed <= 20 && !found; ++seed) {
      NodeJob job(even(3, 2), fault.wanted.limits.stage_bytes, seed);
      // A barrier is judged by a rank that comes late.
      const int late =
          fault.wanted.operation == Operation::barrier ? static_cast<int>(seed % 6) : -1;
      REQUIRE(job.run(fault.wanted, {}, late) == "");
      found = !job.run(fault.wanted, fault.plant, late).empty() || !job.run(fault.wanted).empty();
    }
    CHECK(found);
  }
}

// Rows of doc/algorithms.md: | name | nodes x ranks | bytes a block | rounds | messages | bytes |,
// the last two over all wires together.
TEST_CASE("nodes: steps and bytes are those of the page") {
  std::ifstream page(std::string(SOURCE_ROOT) + "/doc/algorithms.md");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    char name[64] = {};
    int nodes = 0;
    int each = 0;
    unsigned long long bytes = 0;
    unsigned long long rounds = 0;
    unsigned long long messages = 0;
    unsigned long long moved = 0;
    const int fields = std::sscanf(
        line.c_str(), "| %63[a-z ] | %d x %d | %llu | %llu | %llu | %llu |", name, &nodes, &each,
        &bytes, &rounds, &messages, &moved);
    if (fields != 7) continue;
    ++rows;
    const std::string text = name;
    NodeCase wanted;
    wanted.blocks = {bytes};
    wanted.limits = node_limits(Table{}, 4 << 20);
    wanted.limits.alltoall_bytes = bytes; // the page tells of the algorithm, not when it is taken
    if (text.find("spread") != std::string::npos) wanted.limits.allgather_bytes = 0;
    if (text.rfind("allgather", 0) == 0) wanted.operation = Operation::allgather;
    if (text.rfind("broadcast", 0) == 0) wanted.operation = Operation::broadcast;
    if (text.rfind("gather", 0) == 0) wanted.operation = Operation::gather;
    if (text.rfind("barrier", 0) == 0) wanted.operation = Operation::barrier;
    const NodeMap map = even(nodes, each);
    const NodePlan plan = plan_nodes({wanted.operation, 0, &map, 0, wanted.blocks, wanted.limits});
    NodeJob job(map, plan.stage_bytes, 5);
    CAPTURE(line);
    REQUIRE(job.run(wanted) == "");
    const PostOffice::Traffic traffic = job.traffic();
    CHECK(job.rounds() == rounds);
    CHECK(traffic.messages == messages);
    CHECK(traffic.bytes == moved);
  }
  CHECK(rows >= 12);
}
