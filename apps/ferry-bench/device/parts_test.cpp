// SPDX-License-Identifier: MIT
// The calls that ferry-bench makes on GPUs, and its words for them; no GPU is needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/ferry-bench/device/call.hpp"
#include "apps/ferry-bench/device/options.hpp"
#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

namespace {

DeviceOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"ferry-bench", "--memory", "device"});
  return parse_device(static_cast<int>(words.size()), words.data());
}

// What a word stands for.
DeviceCall call_of(const char* word, std::uint64_t bytes) {
  const Wanted wanted = parse({word}).operations.at(0);
  return {wanted.operation, bytes, wanted.shape};
}

constexpr const char* kCalls[] = {"alltoall",   "allgather",       "broadcast",
                                  "alltoallv",  "alltoallv-zeros", "alltoallv-others",
                                  "allgatherv", "allgatherv-zeros"};

} // namespace

TEST_CASE("device bench: what a rank sends to another is what that one gets, side by side") {
  for (const char* word : kCalls) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const std::uint64_t bytes : {8, 1000, 4096}) {
        const DeviceCall call = call_of(word, bytes);
        for (int rank = 0; rank < ranks; ++rank) {
          const Parts in = received_by(call, rank, ranks);
          std::uint64_t end = 0;
          for (int peer = 0; peer < ranks; ++peer) {
            const auto p = static_cast<std::size_t>(peer);
            const Parts out = sent_by(call, peer, ranks);
            const bool comes = call.operation != FERRY_BCAST || (peer == 0 && rank != 0);
            const auto r = static_cast<std::size_t>(rank);
            CHECK(in.bytes[p] == (comes ? out.bytes[r] : 0));
            CHECK(out.offsets[r] + out.bytes[r] <= out.all);
            CHECK(in.offsets[p] == end);
            end += in.bytes[p];
          }
          CHECK(in.all == end);
        }
      }
    }
  }
}

TEST_CASE("device bench: shapes have the blocks that their names say") {
  const DeviceCall uneven = call_of("alltoallv", 1024);
  std::vector<std::uint64_t> lengths;
  for (int peer = 0; peer < 3; ++peer) lengths.push_back(block_bytes(uneven, 1, peer));
  std::sort(lengths.begin(), lengths.end());
  CHECK(lengths == std::vector<std::uint64_t>{512, 1024, 1536});
  const DeviceCall zeros = call_of("alltoallv-zeros", 1024);
  CHECK(block_bytes(zeros, 1, 0) == 0);
  CHECK(block_bytes(zeros, 0, 1) > 0);
  const DeviceCall others = call_of("alltoallv-others", 1024);
  CHECK(block_bytes(others, 1, 1) == 0);
  CHECK(block_bytes(others, 0, 1) == 1024);
  const DeviceCall gathered = call_of("allgatherv-zeros", 1024);
  CHECK(block_bytes(gathered, 1, 0) == 0);
  CHECK(block_bytes(gathered, 2, 0) > 0);
  for (const char* word : kCalls) {
    const std::string name = std::string(word) == "broadcast" ? "bcast" : word;
    CHECK(name_of(call_of(word, 8)) == name);
  }
}

TEST_CASE("device bench: words and options") {
  CHECK(parse({}).operations.size() == 1);
  CHECK(parse({}).sizes.size() > 8);
  CHECK(parse({"all"}).operations.size() == std::size(kCalls) + 1);
  CHECK(parse({"alltoall-armed"}).operations.at(0).armed);
  const DeviceOptions o = parse(
      {"alltoall", "allgatherv", "--sizes", "8,64K", "--rounds", "0", "--peer", "none",
       "--overlap"});
  CHECK(o.operations.size() == 2);
  CHECK(o.sizes == std::vector<std::uint64_t>{8, 65536});
  CHECK(o.rounds == 1);
  CHECK(o.overlap);
  CHECK_FALSE(o.nccl);
  CHECK_THROWS_AS(parse({"alltoallw"}), UsageError);
  CHECK_THROWS_AS(parse({"--peer", "mpi"}), UsageError);
  CHECK_THROWS_AS(parse({"--sizes", "8,x"}), UsageError);
  CHECK_THROWS_AS(parse({"--json"}), UsageError);
}

} // namespace ferry::bench
