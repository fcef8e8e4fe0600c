// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/call.hpp"

#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

namespace {

constexpr std::uint64_t kUnit = 8; // uneven blocks stay aligned

bool gathers(const DeviceCall& call) {
  return call.operation == FERRY_ALLGATHER || call.operation == FERRY_ALLGATHERV;
}

} // namespace

std::string name_of(const DeviceCall& call) {
  std::string name = call.operation == FERRY_ALLGATHERV ? "allgatherv" : name_of(call.operation);
  if (call.shape == Shape::zeros) name += "-zeros";
  if (call.shape == Shape::others) name += "-others";
  return name;
}

std::uint64_t block_bytes(const DeviceCall& call, int sender, int receiver) {
  const std::uint64_t half = (call.bytes / 2 + kUnit - 1) / kUnit * kUnit;
  if (call.operation == FERRY_ALLTOALLV) {
    if (call.shape == Shape::zeros && sender > receiver) return 0;
    if (call.shape == Shape::others) return sender == receiver ? 0 : call.bytes;
    return half * static_cast<std::uint64_t>(1 + (sender + 2 * receiver) % 3);
  }
  if (call.operation == FERRY_ALLGATHERV) {
    if (call.shape == Shape::zeros && sender % 2 != 0) return 0;
    return half * static_cast<std::uint64_t>(1 + sender % 3);
  }
  return call.bytes;
}

Parts sent_by(const DeviceCall& call, int rank, int ranks) {
  Parts parts;
  const bool one = gathers(call) || call.operation == FERRY_BCAST; // block for everybody
  for (int peer = 0; peer < ranks; ++peer) {
    const std::uint64_t bytes = block_bytes(call, rank, peer);
    parts.offsets.push_back(one ? 0 : parts.all);
    parts.bytes.push_back(bytes);
    parts.all = one ? bytes : parts.all + bytes;
  }
  return parts;
}

Parts received_by(const DeviceCall& call, int rank, int ranks) {
  Parts parts;
  const bool bcast = call.operation == FERRY_BCAST;
  for (int peer = 0; peer < ranks; ++peer) {
    const bool nothing = bcast && (peer != 0 || rank == 0); // the root has the message already
    parts.offsets.push_back(parts.all);
    parts.bytes.push_back(nothing ? 0 : block_bytes(call, peer, rank));
    parts.all += parts.bytes.back();
  }
  return parts;
}

} // namespace ferry::bench
