// SPDX-License-Identifier: MIT

// Every function of the device layer that publishes something, as a kernel of its own, for
// isa_test.py: compiled, never run.

#include <cstdint>

#include "ferry/device.hpp"

namespace {

using namespace ferry::device;

// As many looks as a caller asks for.
struct Call {
  TeamHandle team;
  RingHandle ring;
  void* to;
  const void* from;
  std::uint64_t bytes;
  std::uint64_t* signal;
  const PacketSpan* packets;
  Reservation* shared;
  PutResult* result;
  std::uint32_t peer;
  std::uint64_t budget;
};

} // namespace

#define FERRY_PROBE extern "C" __attribute__((global)) void

FERRY_PROBE put_signal_single(Call c) {
  *c.result = put_signal(SingleProducer(c.ring), c.to, c.from, c.bytes, c.signal);
}

FERRY_PROBE put_signal_shared(Call c) {
  *c.result = put_signal(MultiProducer(c.ring), c.to, c.from, c.bytes, c.signal);
}

FERRY_PROBE submit_wave(Call c) {
  const Wave wave;
  const GroupSlot slot{28ull * wave.rank(), c.bytes};
  if (!submit_group(MultiProducer(c.ring), wave, c.shared, slot, c.packets[wave.rank()])) {
    c.result->ticket = 1;
  }
}

FERRY_PROBE submit_workgroup(Call c) {
  const Workgroup group;
  const GroupSlot slot{28ull * group.rank(), c.bytes};
  if (!submit_group(SingleProducer(c.ring), group, c.shared, slot, c.packets[group.rank()])) {
    c.result->ticket = 1;
  }
}

FERRY_PROBE team_put_signal_wave(Call c) {
  *c.result = put_signal(c.team, c.peer, 0, c.from, c.bytes, 1, Wave{});
}

FERRY_PROBE team_put_signal_workgroup(Call c) {
  *c.result = put_signal(c.team, c.peer, 0, c.from, c.bytes, 1, Workgroup{});
}

FERRY_PROBE team_fence(Call c) {
  c.result->status = fence(c.team, c.peer, Wave{});
}

FERRY_PROBE signal_single(Call c) {
  *c.result = signal(SingleProducer(c.ring), c.signal);
}

FERRY_PROBE submit_single(Call c) {
  c.result->ticket = submit(SingleProducer(c.ring), c.packets, c.bytes);
}

FERRY_PROBE submit_shared(Call c) {
  c.result->ticket = submit(MultiProducer(c.ring), c.packets, c.bytes);
}

FERRY_PROBE team_put_signal_thread(Call c) {
  *c.result = put_signal(c.team, c.peer, 0, c.from, c.bytes);
}

FERRY_PROBE team_signal_workgroup(Call c) {
  *c.result = signal(c.team, c.peer, 1, Workgroup{});
}

FERRY_PROBE team_put_value(Call c) {
  *c.result = put_value(c.team, c.peer, 0, c.bytes);
}

FERRY_PROBE team_barrier(Call c) {
  c.result->status = barrier(c.team, Attempts(c.budget), Workgroup{});
}

FERRY_PROBE team_alltoall_wave(Call c) {
  c.result->status = alltoall(c.team, 0, c.from, c.bytes, Attempts(c.budget), Wave{});
}

FERRY_PROBE team_alltoall_workgroup(Call c) {
  c.result->status = alltoall(c.team, 0, c.from, c.bytes, Attempts(c.budget), Workgroup{});
}

FERRY_PROBE team_allgather(Call c) {
  c.result->status = allgather(c.team, 0, c.from, c.bytes, Attempts(c.budget), Workgroup{});
}

FERRY_PROBE team_broadcast(Call c) {
  c.result->status = broadcast(c.team, c.peer, 0, c.bytes, Attempts(c.budget), Workgroup{});
}
