// SPDX-License-Identifier: MIT
#pragma once

// What the kernels of a plan are given, and how they are launched. Passed by value.

#include <cstdint>

#include "lib/nvidia/handles.hpp"

namespace ferry::nvidia {

inline constexpr int kInlinePeers = 8; // more ranks: a table in device memory
inline constexpr int kMaxBlocks = 128; // that push; each has words of its own at every peer
inline constexpr int kGateWords = 16;
// Bytes of a block that a unit of a slot carries, and how long the unit is.
inline constexpr std::uint64_t kWordData = 8; // two words, each with a flag of its own
inline constexpr std::uint64_t kWordUnit = 16;
inline constexpr std::uint64_t kLineData = 480; // four lines of 128 bytes, each with one flag
inline constexpr std::uint64_t kLineUnit = 512;

// The words of one writer at one reader: only ever raised to the epoch, never reset.
struct BlockWords {
  std::uint64_t ready[kMaxBlocks]; // the writer's buffers may be written (slots: were read)
  std::uint64_t arrived[kMaxBlocks]; // the writer's data of this epoch is there
};

// A rank as a kernel of this rank sees it.
struct PeerView {
  const char* source = nullptr; // what it gets from here by a kernel; null: nothing
  std::uint64_t source_bytes = 0;
  char* target = nullptr; // where that goes, in its memory
  char* result = nullptr; // where its data goes here; null: none comes
  std::uint64_t result_bytes = 0;
  char* outbox = nullptr; // slots for it, in its memory
  const char* inbox = nullptr; // slots for this rank, here
  BlockWords* written = nullptr; // at the peer, of this rank
  const BlockWords* seen = nullptr; // here, of the peer
};

// How a kernel learns that it shall not wait any longer, and tells that it did not. Pinned memory.
struct Patience {
  const std::uint32_t* abort = nullptr;
  std::uint32_t* failed = nullptr;
  std::uint64_t limit_ns = 0; // 0: none
};

struct ExchangeArgs {
  PeerView peers[kInlinePeers];
  const PeerView* table = nullptr; // instead of peers
  int rank = 0;
  int ranks = 0;
  int push_blocks = 0;
  int own_blocks = 0;
  const char* own_source = nullptr; // null: nothing stays here
  char* own_target = nullptr;
  std::uint64_t own_bytes = 0;
  std::uint64_t* epochs = nullptr; // one for each pushing block: how often it ran
  const std::uint64_t* started = nullptr; // the epoch, instead, where others advance it
  std::uint64_t depth = 0; // slots of each pair
  std::uint64_t slot_bytes = 0;
  bool acknowledged = false; // slots are used again only once they were read: who sends runs ahead
  Patience patience;
};

// Data rides with flags through slots: for short blocks. In words, which arrive whole everywhere;
// or in lines, which take less room and need links that keep the stores of one line together.
void launch_words(const ExchangeArgs& args, hipStream_t stream);
void launch_lines(const ExchangeArgs& args, hipStream_t stream);
// Stores straight into the peers' buffers once these are ready.
void launch_push(const ExchangeArgs& args, hipStream_t stream);

// One thread: waits until each word is at least epoch * scale + offset, then raises the others.
// The epoch is *started, after being advanced by one if asked for.
struct GateArgs {
  std::uint64_t* started = nullptr;
  bool advance = false;
  int waits = 0;
  int raises = 0;
  std::uint64_t scale = 1;
  std::int64_t offset = 0;
  const std::uint64_t* wait[kGateWords];
  std::uint64_t* raise[kGateWords];
  Patience patience;
};
void launch_gate(const GateArgs& args, hipStream_t stream);

// Loads every kernel of the module now: a lazy load would wait for streams that wait for it.
void load_kernels();

} // namespace ferry::nvidia
