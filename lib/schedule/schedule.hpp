// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/schedule/collective.hpp"

namespace ferry::core {

// How the bytes of a plan move.
enum class Path : std::uint8_t {
  local, // one rank: nothing but the own block
  slots, // data rides with its flag through small slots, by plain stores and loads
  engine, // SDMA packets on rings
  mpi, // the MPI below
  device, // the copy engines or kernels of a GPU
  nodes, // shared memory within nodes, the MPI below between them
};
[[nodiscard]] const char* name_of(Path path);

// Buffers that a step may name; addresses come in when the schedule is lowered.
enum class Buffer : std::uint8_t { send, recv, slot, stage };

// Bytes of a rank's buffer. Slot and stage lie in the memory of the rank that writes them. `block`:
// which block of send or recv; `offset` counts its data bytes, without gaps of its type.
struct Place {
  Buffer buffer = Buffer::send;
  int rank = 0;
  int block = 0;
  std::uint64_t offset = 0;
};

// Monotonic counters in the memory of the rank that waits, one for each writer. "ready": the writer
// has entered this epoch, its buffers may be accessed. "moved": the writer has finished a transfer
// into or out of the waiter's buffers. "filled" and "drained": a stage chunk was written, read.
// "slot": the flag of a slot, in the slot itself.
enum class SignalKind : std::uint8_t { ready, moved, filled, drained, slot };
inline constexpr int kSignalWords = 4; // kinds that live in signal words of their own
inline constexpr int kEveryone = -1; // Step::peer of a slot flag that all ranks read

enum class StepKind : std::uint8_t { copy, signal, await };

struct Step {
  StepKind kind = StepKind::copy;
  SignalKind signal = SignalKind::ready;
  int peer = 0; // signal: whose counter goes up; await: whose signal is waited for
  std::uint64_t ordinal = 0; // await: the how-manieth such signal of this epoch, from 1
  Place to; // copy
  Place from; // copy
  std::uint64_t bytes = 0; // copy, more than 0
};

// Steps of a queue run in order; queues are unordered among each other. Queue 0 of a schedule is
// run by the calling thread, the others become rings of an engine.
struct StepQueue {
  int peer = 0;
  std::vector<Step> steps;
};

// What one rank does in one epoch: plain data, no addresses.
struct Schedule {
  Operation operation = Operation::alltoall;
  Path path = Path::local;
  int rank = 0;
  int ranks = 1;
  std::vector<StepQueue> queues;
  bool irregular = false; // an exchange: blocks of different sizes
  std::uint64_t slot_bytes = 0; // payload of one slot of this rank
  int slot_count = 0; // slots of each rank in one epoch, 0: this one neither writes nor reads any
  std::uint64_t stage_bytes = 0; // stage memory that this rank writes through
  std::string why; // one line for explain()

  // How many signals of each kind arrive from each writer in one epoch: [kind * ranks + writer].
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const;
};

// The steps for people, one a line.
[[nodiscard]] std::string print(const Schedule& schedule);
[[nodiscard]] std::string print(const Step& step);

// Empty when the schedules of all ranks fit together: each block is delivered once and from where
// it should come, no write meets another or unread data, every wait has its signal and no cycle,
// nobody's buffer is touched before it entered or after it left. Otherwise the first fault, naming
// rank, queue and step. `seed` picks the interleaving that is tried; block_bytes is
// CollectiveDesc::block_bytes.
struct VerifyInput {
  bool in_place = false;
  int root = 0;
  std::uint64_t block_bytes = 0;
  bool handshake = true; // ranks enter at different times, and must be waited for
  // Of an exchange with irregular blocks: bytes from rank i to rank j at [i * ranks + j].
  std::vector<std::uint64_t> pair_bytes;
};
[[nodiscard]] std::string verify(
    const std::vector<Schedule>& job, const VerifyInput& input, std::uint64_t seed);

} // namespace ferry::core
