// SPDX-License-Identifier: MIT
#pragma once

// SDMA packets as dwords, in the layout of gfx9 (plus the 64-bit poll, which the software engine
// waits with because a 32-bit comparison wraps). Builders check every value before they encode it:
// nothing is masked, and what does not fit is a status.

#include <cstdint>

#include "platform.hpp"

namespace ferry::device {

inline constexpr std::uint64_t kMaxCopyBytes = std::uint64_t{1} << 30; // 30-bit bytes - 1
inline constexpr std::uint64_t kSafeCopyBytes = std::uint64_t{128} << 20; // measured safe on GPUs
inline constexpr std::uint64_t kMaxFillBytes = std::uint64_t{1} << 22; // 22-bit bytes - 1
inline constexpr std::uint64_t kMaxNopDwords = std::uint64_t{1} << 14; // 14-bit dwords - 1
inline constexpr std::uint64_t kMaxWriteDwords = std::uint64_t{1} << 20; // 20-bit dwords - 1
inline constexpr std::uint32_t kMaxTrapContext = (std::uint32_t{1} << 28) - 1;

enum class PacketStatus : std::uint32_t {
  ok = 0,
  zero_bytes,
  too_long,
  misaligned,
  null_address,
};

enum class Opcode : std::uint32_t {
  nop = 0,
  copy = 1,
  write = 2,
  fence = 5,
  trap = 6,
  poll = 8,
  atomic = 10,
  fill = 11,
};

inline constexpr std::uint32_t kPollMem64 = 5; // sub-op of poll
inline constexpr std::uint32_t kAtomicAdd64 = 47; // returning
inline constexpr std::uint32_t kPollAtLeast = 5; // function >=
inline constexpr std::uint32_t kPollInterval = 4;
inline constexpr std::uint32_t kPollForEver = 0xfff;
inline constexpr std::uint32_t kPollMemory = 0x80000000u; // bit 31: memory, not a register
inline constexpr std::uint32_t kFillDword = 0x80000000u; // bits 31:30 = 2

constexpr FERRY_DEVICE_FN std::uint32_t header(Opcode op, std::uint32_t sub_op = 0) {
  return static_cast<std::uint32_t>(op) | sub_op << 8;
}

struct CopyPacket {
  std::uint32_t dw[7];
};
struct FencePacket {
  std::uint32_t dw[4];
};
struct AtomicPacket {
  std::uint32_t dw[8];
};
struct PollPacket {
  std::uint32_t dw[6];
};
struct Poll64Packet {
  std::uint32_t dw[8];
};
struct TrapPacket {
  std::uint32_t dw[2];
};
struct FillPacket {
  std::uint32_t dw[5];
};
// The 4 dwords before the inline data.
struct WriteHeader {
  std::uint32_t dw[4];
};

namespace detail {

constexpr FERRY_DEVICE_FN std::uint32_t low(std::uint64_t v) {
  return static_cast<std::uint32_t>(v & 0xffffffffu);
}

constexpr FERRY_DEVICE_FN std::uint32_t high(std::uint64_t v) {
  return static_cast<std::uint32_t>(v >> 32);
}

constexpr FERRY_DEVICE_FN PacketStatus check_word(std::uint64_t address, std::uint64_t alignment) {
  if (address == 0) return PacketStatus::null_address;
  return address % alignment == 0 ? PacketStatus::ok : PacketStatus::misaligned;
}

} // namespace detail

// First dword of a NOP that takes 1 .. kMaxNopDwords dwords in all; the others are ignored.
constexpr FERRY_DEVICE_FN std::uint32_t nop_header(std::uint64_t dwords) {
  return header(Opcode::nop) | detail::low(dwords - 1) << 16;
}

[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_nop(std::uint32_t& out, std::uint64_t dwords) {
  if (dwords == 0) return PacketStatus::zero_bytes;
  if (dwords > kMaxNopDwords) return PacketStatus::too_long;
  out = nop_header(dwords);
  return PacketStatus::ok;
}

// Any alignment. A zero-byte copy does not exist: the caller emits nothing.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_copy(CopyPacket& out, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
  if (bytes == 0) return PacketStatus::zero_bytes;
  if (bytes > kMaxCopyBytes) return PacketStatus::too_long;
  if (destination == 0 || source == 0) return PacketStatus::null_address;
  out = {
      {header(Opcode::copy), detail::low(bytes - 1), 0, detail::low(source), detail::high(source),
       detail::low(destination), detail::high(destination)}};
  return PacketStatus::ok;
}

// Stores a 32-bit value after everything before it on the queue.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_fence(FencePacket& out, std::uint64_t address, std::uint32_t value) {
  const PacketStatus status = detail::check_word(address, 4);
  if (status != PacketStatus::ok) return status;
  out = {{header(Opcode::fence), detail::low(address), detail::high(address), value}};
  return PacketStatus::ok;
}

// Adds to a 64-bit signal after everything before it on the queue.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_atomic_add(AtomicPacket& out, std::uint64_t address, std::uint64_t value) {
  const PacketStatus status = detail::check_word(address, 8);
  if (status != PacketStatus::ok) return status;
  out = {
      {header(Opcode::atomic) | kAtomicAdd64 << 25, detail::low(address), detail::high(address),
       detail::low(value), detail::high(value), 0, 0, 0}};
  return PacketStatus::ok;
}

// Holds the queue until the 32-bit word at address is >= reference.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_poll(PollPacket& out, std::uint64_t address, std::uint32_t reference) {
  const PacketStatus status = detail::check_word(address, 4);
  if (status != PacketStatus::ok) return status;
  out = {
      {header(Opcode::poll) | kPollAtLeast << 28 | kPollMemory, detail::low(address),
       detail::high(address), reference, 0xffffffffu, kPollForEver << 16 | kPollInterval}};
  return PacketStatus::ok;
}

// Holds the queue until the 64-bit word at address is >= reference (gfx1250, software engine).
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_poll64(Poll64Packet& out, std::uint64_t address, std::uint64_t reference) {
  const PacketStatus status = detail::check_word(address, 8);
  if (status != PacketStatus::ok) return status;
  constexpr std::uint32_t kScopeSystem = 3;
  constexpr std::uint32_t kRetries = 0xff;
  out = {
      {header(Opcode::poll, kPollMem64) | kPollAtLeast << 28, detail::low(address),
       detail::high(address), detail::low(reference), detail::high(reference), 0xffffffffu,
       0xffffffffu, kScopeSystem << 28 | kRetries << 16}};
  return PacketStatus::ok;
}

[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_trap(TrapPacket& out, std::uint32_t context) {
  if (context > kMaxTrapContext) return PacketStatus::too_long;
  out = {{header(Opcode::trap), context}};
  return PacketStatus::ok;
}

// Fills with a repeated dword. The count is bytes - 1 of a dword multiple, which is what every
// reader of this packet that counts in bytes agrees on.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_fill(FillPacket& out, std::uint64_t destination, std::uint32_t pattern, std::uint64_t bytes) {
  if (bytes == 0) return PacketStatus::zero_bytes;
  if (bytes > kMaxFillBytes) return PacketStatus::too_long;
  if (bytes % 4 != 0) return PacketStatus::misaligned;
  const PacketStatus status = detail::check_word(destination, 4);
  if (status != PacketStatus::ok) return status;
  out = {
      {header(Opcode::fill) | kFillDword, detail::low(destination), detail::high(destination),
       pattern, detail::low(bytes - 1)}};
  return PacketStatus::ok;
}

// The header of 4 + dwords dwords: the caller places the data behind it. Never for completion
// flags: an engine may overlap a copy and a following write.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_write(WriteHeader& out, std::uint64_t destination, std::uint64_t dwords) {
  if (dwords == 0) return PacketStatus::zero_bytes;
  if (dwords > kMaxWriteDwords) return PacketStatus::too_long;
  const PacketStatus status = detail::check_word(destination, 4);
  if (status != PacketStatus::ok) return status;
  out = {
      {header(Opcode::write), detail::low(destination), detail::high(destination),
       detail::low(dwords - 1)}};
  return PacketStatus::ok;
}

enum class PacketKind : std::uint8_t { nop, copy, write, fence, trap, poll, poll64, atomic, fill };

// What a reader must know of a packet before it may look at its fields.
struct PacketInfo {
  PacketKind kind;
  std::uint8_t op;
  std::uint8_t sub_op;
  std::uint8_t min_dwords; // the whole packet unless a length field follows
  std::uint8_t length_dword; // dword whose low 20 bits hold further dwords - 1; 0: fixed length
  std::uint32_t header_bits; // bits of the first dword that are fields; the others are zero
  const char* name;
};

// The only list of packets: decoders take lengths and names from here. Frequent ones come first.
inline constexpr PacketInfo kPackets[] = {
    {PacketKind::copy, 1, 0, 7, 0, 0, "COPY_LINEAR"},
    {PacketKind::atomic, 10, 0, 8, 0, 0xfe000000u, "ATOMIC"},
    {PacketKind::poll64, 8, 5, 8, 0, 0x70000000u, "POLL_MEM_64B"},
    {PacketKind::nop, 0, 0, 1, 0, 0x3fff0000u, "NOP"},
    {PacketKind::fence, 5, 0, 4, 0, 0, "FENCE"},
    {PacketKind::poll, 8, 0, 6, 0, 0xf0000000u, "POLL_REGMEM"},
    {PacketKind::write, 2, 0, 4, 3, 0, "WRITE_LINEAR"},
    {PacketKind::fill, 11, 0, 5, 0, 0xc0000000u, "CONST_FILL"},
    {PacketKind::trap, 6, 0, 2, 0, 0, "TRAP"},
};

// By the first dword; null for a packet that Ferry does not know.
constexpr const PacketInfo* find_packet(std::uint32_t first) {
  for (const PacketInfo& info : kPackets) {
    if ((first & 0xffffu) == (std::uint32_t{info.op} | std::uint32_t{info.sub_op} << 8)) {
      return &info;
    }
  }
  return nullptr;
}

constexpr const char* packet_name(std::uint32_t first) {
  const PacketInfo* const info = find_packet(first);
  return info != nullptr ? info->name : "unknown packet";
}

// Dwords of the packet at dw, of which the first info.min_dwords are readable.
constexpr std::uint64_t packet_dwords(const PacketInfo& info, const std::uint32_t* dw) {
  if (info.kind == PacketKind::nop) return std::uint64_t{(dw[0] >> 16) & 0x3fffu} + 1;
  if (info.length_dword == 0) return info.min_dwords;
  return info.min_dwords + std::uint64_t{dw[info.length_dword] & 0xfffffu} + 1;
}

} // namespace ferry::device
