// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lib/exec/recorder.hpp"
#include "lib/schedule/lower.hpp"

namespace ferry::core {

// What a rank tells its peers about a call: the call itself, for comparison, and where its buffers
// are. To all of them, or of an exchange to each what concerns the two. Sent as bytes.
struct Offer {
  std::uint64_t send_bytes = 0; // of one block
  std::uint64_t recv_bytes = 0;
  std::uint64_t send = 0; // offset in the heap when mapped, else the address in its process
  std::uint64_t recv = 0;
  std::uint64_t stage = 0; // offset in the heap
  std::uint64_t block = 0; // offset in the heap
  std::int32_t root = 0;
  std::uint8_t operation = 0;
  std::uint8_t in_place = 0; // call_bits
  std::uint8_t facts = 0; // kSendMapped ...
  std::uint8_t no_memory = 0; // this rank needed stage or block memory and got none
  bool operator==(const Offer&) const = default;
};
static_assert(std::is_trivially_copyable_v<Offer> && sizeof(Offer) == 56);

inline constexpr std::uint8_t kSendMapped = 1;
inline constexpr std::uint8_t kRecvMapped = 2;
inline constexpr std::uint8_t kSendPlain = 4;
inline constexpr std::uint8_t kRecvPlain = 8;
inline constexpr int kDeviceShift = 4; // two bits: the DeviceKind of this rank's buffers

// Of the bytes called in_place.
inline constexpr std::uint8_t kInPlaceBit = 1;
inline constexpr std::uint8_t kIrregularBit = 2; // the call is an exchange
inline constexpr std::uint8_t kReductionBit = 4; // a stage of a reduction
// In the slots of a call whose size has a habit: the writer's receive buffer is mapped. No part of
// what must be alike.
inline constexpr std::uint8_t kMappedBit = 8;
[[nodiscard]] inline std::uint8_t call_bits(const CollectiveDesc& desc) {
  return static_cast<std::uint8_t>(
      (desc.in_place ? kInPlaceBit : 0) | (is_exchange(desc) ? kIrregularBit : 0) |
      (desc.of_reduction ? kReductionBit : 0));
}

// An offer in a block, for operation s of a lane in board s % 2. The owner fills a board again only
// after everyone has completed the operation that used it before.
struct alignas(64) Board {
  std::atomic<std::uint64_t> sequence; // written last, with release
  Offer offer;
};
static_assert(sizeof(Board) == 64);

// Head of the memory that a rank provides for a lane or for one persistent plan. Signal words and
// slots follow. The owner writes all but signal words and `departed`.
struct BlockHeader {
  alignas(64) std::atomic<std::uint64_t> done; // last operation that the owner has completed
  // The same for those who wait to fill a slot again, told only now and then: the line is taken
  // from the owner by every look of a writer that has run ahead.
  alignas(64) std::atomic<std::uint64_t> credit;
  alignas(64) std::atomic<std::uint64_t> departed; // peers that will not touch this block again
  alignas(64) std::atomic<std::uint32_t> vote; // of set-up: kVoted and what works
  char reason[124]; // why the vote was no
  Recorder recorder; // of a lane's owner
  Board boards[2];
};

inline constexpr std::uint32_t kVoted = 1;
inline constexpr std::uint32_t kVoteShared = 2;
inline constexpr std::uint32_t kVoteAttach = 4;

// In front of a slot's payload, in the same cache line: the flag rides with the data.
struct SlotHeader {
  std::atomic<std::uint64_t> sequence; // written last, with release
  std::uint32_t bytes;
  std::uint16_t root;
  std::uint8_t operation;
  std::uint8_t in_place; // call_bits, kMappedBit
};
static_assert(sizeof(SlotHeader) == 16);

// Sizes and offsets of a block; the same on every rank.
struct BlockLayout {
  int ranks = 1;
  std::uint64_t slot_payload = 0;
  int slot_count = 0; // slots for one epoch: one a rank, or one that all read
  int slot_depth = 0; // epochs before a slot is used again, a power of two
  bool pair_boards = false; // two for each rank

  [[nodiscard]] std::uint64_t slot_stride() const {
    return (sizeof(SlotHeader) + slot_payload + 63) / 64 * 64;
  }
  [[nodiscard]] static constexpr std::uint64_t signals_offset() { return sizeof(BlockHeader); }
  [[nodiscard]] std::uint64_t pair_boards_offset() const {
    return signals_offset() + static_cast<std::uint64_t>(kSignalWords * ranks) * kSignalStride;
  }
  [[nodiscard]] std::uint64_t slots_offset() const {
    const int boards = pair_boards ? 2 * ranks : 0;
    return pair_boards_offset() + static_cast<std::uint64_t>(boards) * sizeof(Board);
  }
  // What the owner of the block tells `reader` about operation `sequence`.
  [[nodiscard]] Board& pair_board(std::byte* block, std::uint64_t sequence, int reader) const {
    const std::uint64_t index =
        sequence % 2 * static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(reader);
    return reinterpret_cast<Board*>(block + pair_boards_offset())[index];
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return slots_offset() + static_cast<std::uint64_t>(slot_count) *
                                static_cast<std::uint64_t>(slot_depth) * slot_stride();
  }
  [[nodiscard]] std::byte* slot(std::byte* block, std::uint64_t sequence, int index) const {
    const auto depth = sequence & static_cast<std::uint64_t>(slot_depth - 1);
    const auto place =
        depth * static_cast<std::uint64_t>(slot_count) + static_cast<std::uint64_t>(index);
    return block + slots_offset() + place * slot_stride();
  }
};

inline BlockHeader& header_of(std::byte* block) {
  return *reinterpret_cast<BlockHeader*>(block);
}

} // namespace ferry::core
