// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ferry/ferry.h>

namespace ferry::bench {

enum class Shape {
  plain, // v forms: blocks are half, once and one and a half times as long, by turns
  zeros, // of each pair of ranks only the lower one sends (alltoallv), or only even ranks
         // (allgatherv)
  others, // alltoallv: all alike, and nothing stays
};

// One call: bytes of a block between two ranks, or of the message.
struct DeviceCall {
  ferry_operation operation = FERRY_ALLTOALL;
  std::uint64_t bytes = 0;
  Shape shape = Shape::plain;
};

[[nodiscard]] std::string name_of(const DeviceCall& call);
// The block that the sender has for the receiver.
[[nodiscard]] std::uint64_t block_bytes(const DeviceCall& call, int sender, int receiver);

// What a rank sends to, or gets from, each rank; offsets are those in its buffer. The message of a
// broadcast lies in the send buffer of rank 0 and in the receive buffers of others.
struct Parts {
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint64_t> offsets;
  std::uint64_t all = 0; // of the buffer
};
[[nodiscard]] Parts sent_by(const DeviceCall& call, int rank, int ranks);
[[nodiscard]] Parts received_by(const DeviceCall& call, int rank, int ranks);

} // namespace ferry::bench
