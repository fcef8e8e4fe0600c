// SPDX-License-Identifier: MIT
#pragma once

// The one table of packets: which fields each has, where they lie, and on which generations.
// Builders, lengths and the printer are all made of it, so that they cannot drift apart.

#include <cstddef>
#include <cstdint>

#include "generation.hpp"
#include "packet_field.hpp"
#include "packet_fields.hpp"

namespace ferry::device {

// Frequent packets come first.
enum class PacketKind : std::uint8_t {
  copy,
  atomic,
  poll64,
  nop,
  fence,
  poll,
  write,
  fill,
  trap,
  copy_two,
  swap,
  subwindow,
  subwindow_large,
  fence64,
  timestamp,
  copy_wait,
  copy_signal,
  copy_wait_signal,
};

// How many dwords follow the fixed ones.
enum class Tail : std::uint8_t {
  none,
  skipped, // the field `dwords` counts the whole packet
  data, // the field `dwords` counts what follows
};

// Fields that stand together; `dwords` is how many they take.
struct Block {
  const Field* fields = nullptr;
  std::uint8_t count = 0;
  std::uint8_t dwords = 0;
};

template <std::size_t N>
constexpr Block block(const Field (&fields)[N], std::uint8_t dwords) {
  return {fields, static_cast<std::uint8_t>(N), dwords};
}

inline constexpr std::size_t kMaxBlocks = 4;

struct Packet {
  PacketKind kind;
  const char* name;
  std::uint8_t op;
  std::uint8_t sub_op;
  GenerationSet generations;
  std::uint32_t select_mask; // bits of the first dword that tell packets of one op and sub-op apart
  std::uint32_t select;
  Tail tail;
  Block blocks[kMaxBlocks];

  constexpr std::uint8_t dwords() const {
    std::uint8_t sum = 0;
    for (const Block& b : blocks) sum = static_cast<std::uint8_t>(sum + b.dwords);
    return sum;
  }
};

namespace detail {

inline constexpr std::uint32_t kTwo = 1u << 27;
inline constexpr std::uint32_t kWait = 1u << 30;
inline constexpr std::uint32_t kSignal = 1u << 31;
inline constexpr std::uint32_t kForm = kTwo | kWait | kSignal;
inline constexpr GenerationSet kSwapping = kEvery & ~only(Generation::gfx90a);
inline constexpr GenerationSet kPolling64 = kOss7 | only(Generation::software);
inline constexpr Block kHead = block(fields::kCopyHeader, 1);
inline constexpr Block kBody = block(fields::kCopyBody, 6);
inline constexpr Block kAwait = block(fields::kWaitBlock, 7);
inline constexpr Block kNotify = block(fields::kSignalBlock, 5);

} // namespace detail

// In the order of PacketKind.
inline constexpr Packet kPacketTable[] = {
    {PacketKind::copy,
     "COPY_LINEAR",
     1,
     0,
     kEvery,
     detail::kForm,
     0,
     Tail::none,
     {detail::kHead, detail::kBody}},
    {PacketKind::atomic, "ATOMIC", 10, 0, kEvery, 0, 0, Tail::none, {block(fields::kAtomic, 8)}},
    {PacketKind::poll64,
     "POLL_MEM_64B",
     8,
     5,
     detail::kPolling64,
     0,
     0,
     Tail::none,
     {block(fields::kPoll64, 8)}},
    {PacketKind::nop, "NOP", 0, 0, kEvery, 0, 0, Tail::skipped, {block(fields::kNop, 1)}},
    {PacketKind::fence,
     "FENCE",
     5,
     0,
     kEvery,
     0,
     0,
     Tail::none,
     {block(fields::kFenceHeader, 1), block(fields::kFenceBody, 3)}},
    {PacketKind::poll, "POLL_REGMEM", 8, 0, kEvery, 0, 0, Tail::none, {block(fields::kPoll, 6)}},
    {PacketKind::write, "WRITE_LINEAR", 2, 0, kEvery, 0, 0, Tail::data, {block(fields::kWrite, 4)}},
    {PacketKind::fill, "CONST_FILL", 11, 0, kEvery, 0, 0, Tail::none, {block(fields::kFill, 5)}},
    {PacketKind::trap, "TRAP", 6, 0, kEvery, 0, 0, Tail::none, {block(fields::kTrap, 2)}},
    {PacketKind::copy_two,
     "COPY_LINEAR_BROADCAST",
     1,
     0,
     kGfx9,
     detail::kForm,
     detail::kTwo,
     Tail::none,
     {block(fields::kCopyTwo, 9)}},
    {PacketKind::swap,
     "COPY_SWAP",
     1,
     9,
     detail::kSwapping,
     0,
     0,
     Tail::none,
     {block(fields::kSwap, 7)}},
    {PacketKind::subwindow,
     "COPY_LINEAR_SUBWINDOW",
     1,
     4,
     kEvery,
     0,
     0,
     Tail::none,
     {block(fields::kSubwindow, 13)}},
    {PacketKind::subwindow_large,
     "COPY_LINEAR_SUBWINDOW_LARGE",
     1,
     36,
     detail::kSwapping & ~kOss7,
     0,
     0,
     Tail::none,
     {block(fields::kSubwindowLarge, 20)}},
    {PacketKind::fence64,
     "FENCE_64B",
     5,
     2,
     kOss7,
     0,
     0,
     Tail::none,
     {block(fields::kFenceHeader, 1), block(fields::kFence64Body, 4)}},
    {PacketKind::timestamp,
     "TIMESTAMP_GET_GLOBAL",
     13,
     2,
     kEvery,
     0,
     0,
     Tail::none,
     {block(fields::kTimestamp, 3)}},
    {PacketKind::copy_wait,
     "COPY_LINEAR_WAIT",
     1,
     0,
     kOss7,
     detail::kForm,
     detail::kWait,
     Tail::none,
     {detail::kHead, detail::kAwait, detail::kBody}},
    {PacketKind::copy_signal,
     "COPY_LINEAR_SIGNAL",
     1,
     0,
     kOss7,
     detail::kForm,
     detail::kSignal,
     Tail::none,
     {detail::kHead, detail::kBody, detail::kNotify}},
    {PacketKind::copy_wait_signal,
     "COPY_LINEAR_WAIT_SIGNAL",
     1,
     0,
     kOss7,
     detail::kForm,
     detail::kWait | detail::kSignal,
     Tail::none,
     {detail::kHead, detail::kAwait, detail::kBody, detail::kNotify}},
};

constexpr const Packet& packet_of(PacketKind kind) {
  return kPacketTable[static_cast<std::size_t>(kind)];
}

// Calls visit(field, first dword of its block) for every field that the generation has.
template <class Visit>
constexpr void for_each_field(const Packet& packet, Generation generation, Visit visit) {
  std::size_t base = 0;
  for (const Block& b : packet.blocks) {
    for (std::size_t i = 0; i < b.count; ++i) {
      if (contains(b.fields[i].generations, generation)) visit(b.fields[i], base);
    }
    base += b.dwords;
  }
}

// With its dword counted from the beginning of the packet; bits == 0: there is no such field.
constexpr Field field_of(const Packet& packet, Generation generation, FieldId id) {
  Field found{};
  for_each_field(packet, generation, [&](const Field& field, std::size_t base) {
    if (field.id != id) return;
    found = field;
    found.dword = static_cast<std::uint8_t>(field.dword + base);
  });
  return found;
}

// By the first dword; null for what the generation does not have.
constexpr const Packet* find_packet(Generation generation, std::uint32_t first) {
  for (const Packet& p : kPacketTable) {
    const std::uint32_t code = std::uint32_t{p.op} | std::uint32_t{p.sub_op} << 8;
    if ((first & 0xffffu) == code && (first & p.select_mask) == p.select &&
        contains(p.generations, generation)) {
      return &p;
    }
  }
  return nullptr;
}

// Dwords of the packet at dw, of which the first packet.dwords() are readable.
constexpr std::uint64_t packet_dwords(
    const Packet& packet, Generation generation, const std::uint32_t* dw) {
  if (packet.tail == Tail::none) return packet.dwords();
  const std::uint64_t counted = field_value(field_of(packet, generation, FieldId::dwords), dw);
  return packet.tail == Tail::skipped ? counted : packet.dwords() + counted;
}

// The bits of dword i that are fields, opcode or form.
constexpr std::uint32_t defined_bits(const Packet& packet, Generation generation, std::size_t i) {
  std::uint32_t bits = i == 0 ? 0xffffu | packet.select : 0;
  for_each_field(packet, generation, [&](const Field& field, std::size_t base) {
    bits |= field_bits(field, i - base - field.dword);
  });
  return bits;
}

} // namespace ferry::device
