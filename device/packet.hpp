// SPDX-License-Identifier: MIT
#pragma once

// The packets that Ferry's own programs consist of, in the form of the software generation: the
// layout of gfx9, plus the 64-bit poll, which the software engine waits with because a 32-bit
// comparison wraps. Other generations are built by Build<Generation>.

#include <cstddef>
#include <cstdint>

#include "packet_build.hpp"
#include "platform.hpp"

namespace ferry::device {

inline constexpr std::uint64_t kMaxCopyBytes = std::uint64_t{1} << 30; // 30-bit bytes - 1
inline constexpr std::uint64_t kMaxFillBytes = std::uint64_t{1} << 22; // 22-bit bytes - 1
inline constexpr std::uint64_t kMaxNopDwords = std::uint64_t{1} << 14; // 14-bit dwords - 1
inline constexpr std::uint64_t kMaxWriteDwords = std::uint64_t{1} << 20; // 20-bit dwords - 1
inline constexpr std::uint32_t kMaxTrapContext = (std::uint32_t{1} << 28) - 1;
inline constexpr std::uint32_t kPollMemory = 0x80000000u; // bit 31: memory, not a register
inline constexpr std::uint32_t kFillDword = 0x80000000u; // bits 31:30 = 2

using SoftwareBuild = Build<Generation::software>;

// First dword of a NOP that takes 1 .. kMaxNopDwords dwords in all; the others are ignored.
constexpr FERRY_DEVICE_FN std::uint32_t nop_header(std::uint64_t dwords) {
  return static_cast<std::uint32_t>((dwords - 1) << 16 & 0xffffffffu);
}

[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_nop(std::uint32_t& out, std::uint64_t dwords) {
  return SoftwareBuild::nop(out, dwords);
}

// Any alignment. A zero-byte copy does not exist: the caller emits nothing.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_copy(CopyPacket& out, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
  return SoftwareBuild::copy(out, destination, source, bytes);
}

// Stores a 32-bit value after everything before it on the queue.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_fence(FencePacket& out, std::uint64_t address, std::uint32_t value) {
  return SoftwareBuild::fence(out, address, value);
}

// Adds to a 64-bit signal after everything before it on the queue.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_atomic_add(AtomicPacket& out, std::uint64_t address, std::uint64_t value) {
  return SoftwareBuild::atomic(out, AtomicOperation::add, 8, true, address, value);
}

// Holds the queue until the 32-bit word at address is >= reference.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_poll(PollPacket& out, std::uint64_t address, std::uint32_t reference) {
  return SoftwareBuild::poll(out, address, reference);
}

// Holds the queue until the 64-bit word at address is >= reference (gfx1250, software engine).
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_poll64(Poll64Packet& out, std::uint64_t address, std::uint64_t reference) {
  return SoftwareBuild::poll64(out, address, reference);
}

[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_trap(TrapPacket& out, std::uint32_t context) {
  return SoftwareBuild::trap(out, context);
}

// Fills with a repeated dword.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_fill(FillPacket& out, std::uint64_t destination, std::uint32_t pattern, std::uint64_t bytes) {
  return SoftwareBuild::fill(out, destination, pattern, bytes);
}

// The header of 4 + dwords dwords: the caller places the data behind it. Never for completion
// flags: an engine may overlap a copy and a following write.
[[nodiscard]] constexpr FERRY_DEVICE_FN PacketStatus
build_write(WriteHeader& out, std::uint64_t destination, std::uint64_t dwords) {
  return SoftwareBuild::write(out, destination, dwords);
}

// What a reader must know of a packet before it may look at its fields.
struct PacketInfo {
  PacketKind kind;
  std::uint16_t code; // op and sub-op
  std::uint8_t min_dwords; // the whole packet unless a length field follows
  std::uint32_t header_bits; // bits of the first dword that are fields; the others are zero
  const char* name;
};

constexpr PacketInfo packet_info(PacketKind kind) {
  const Packet& p = packet_of(kind);
  return {
      kind, static_cast<std::uint16_t>(p.op | p.sub_op << 8), p.dwords(),
      defined_bits(p, Generation::software, 0) & 0xffff0000u, p.name};
}

// Taken from the table.
inline constexpr PacketInfo kPackets[] = {
    packet_info(PacketKind::copy),   packet_info(PacketKind::atomic),
    packet_info(PacketKind::poll64), packet_info(PacketKind::nop),
    packet_info(PacketKind::fence),  packet_info(PacketKind::poll),
    packet_info(PacketKind::write),  packet_info(PacketKind::fill),
    packet_info(PacketKind::trap),
};

// By the first dword; null for a packet that Ferry's programs do not have.
constexpr const PacketInfo* find_packet(std::uint32_t first) {
  for (const PacketInfo& info : kPackets) {
    if ((first & 0xffffu) == info.code) return &info;
  }
  return nullptr;
}

constexpr const char* packet_name(std::uint32_t first) {
  const PacketInfo* const info = find_packet(first);
  return info != nullptr ? info->name : "unknown packet";
}

// Dwords of the packet at dw, of which the first info.min_dwords are readable.
constexpr std::uint64_t packet_dwords(const PacketInfo& info, const std::uint32_t* dw) {
  return packet_dwords(packet_of(info.kind), Generation::software, dw);
}

} // namespace ferry::device
