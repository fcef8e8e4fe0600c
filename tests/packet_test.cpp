// SPDX-License-Identifier: MIT
// Dwords written by hand from the packet tables of gfx9; the comment at each names the table.
#include "device/packet.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using namespace ferry::device;
using Dwords = std::vector<std::uint32_t>;

namespace {

constexpr std::uint64_t kSource = 0x0000'1122'3344'5567;
constexpr std::uint64_t kDestination = 0x0000'7f01'89ab'cde3;
constexpr std::uint64_t kWord = 0x0000'7ffe'0000'1008;

template <class Packet>
Dwords dwords(const Packet& packet) {
  static_assert(std::is_trivially_copyable_v<Packet>);
  return Dwords(std::begin(packet.dw), std::end(packet.dw));
}

} // namespace

TEST_CASE("NOP: count is dwords - 1 in bits 29:16 (table 1.2)") {
  std::uint32_t header = 0xdead;
  CHECK(build_nop(header, 1) == PacketStatus::ok);
  CHECK(header == 0x0000'0000);
  CHECK(build_nop(header, 2) == PacketStatus::ok);
  CHECK(header == 0x0001'0000);
  CHECK(build_nop(header, 16383) == PacketStatus::ok);
  CHECK(header == 0x3ffe'0000);
  CHECK(build_nop(header, 16384) == PacketStatus::ok);
  CHECK(header == 0x3fff'0000);
  header = 0xdead;
  CHECK(build_nop(header, 16385) == PacketStatus::too_long);
  CHECK(build_nop(header, 0) == PacketStatus::zero_bytes);
  CHECK(header == 0xdead);
}

TEST_CASE("COPY_LINEAR: 7 dwords, bytes - 1, source before destination (table 1.3)") {
  CopyPacket p{};
  REQUIRE(build_copy(p, kDestination, kSource, 4097) == PacketStatus::ok);
  CHECK(
      dwords(p) ==
      Dwords{0x0000'0001, 0x0000'1000, 0, 0x3344'5567, 0x0000'1122, 0x89ab'cde3, 0x0000'7f01});
}

TEST_CASE("COPY_LINEAR: 30 bits of count at the limit - 1, at it and beyond it (table 1.19)") {
  CopyPacket p{};
  CHECK(build_copy(p, kDestination, kSource, 1) == PacketStatus::ok);
  CHECK(p.dw[1] == 0);
  CHECK(build_copy(p, kDestination, kSource, 0x3fff'ffff) == PacketStatus::ok);
  CHECK(p.dw[1] == 0x3fff'fffe);
  CHECK(build_copy(p, kDestination, kSource, 0x4000'0000) == PacketStatus::ok);
  CHECK(p.dw[1] == 0x3fff'ffff);
  const Dwords before = dwords(p);
  CHECK(build_copy(p, kDestination, kSource, 0x4000'0001) == PacketStatus::too_long);
  CHECK(build_copy(p, kDestination, kSource, 0x1'0000'0001) == PacketStatus::too_long);
  CHECK(build_copy(p, kDestination, kSource, 0) == PacketStatus::zero_bytes);
  CHECK(build_copy(p, 0, kSource, 8) == PacketStatus::null_address);
  CHECK(build_copy(p, kDestination, 0, 8) == PacketStatus::null_address);
  CHECK(dwords(p) == before); // a refused packet leaves nothing behind
}

TEST_CASE("FENCE: 4 dwords (table 1.11)") {
  FencePacket p{};
  REQUIRE(build_fence(p, kWord + 4, 0xcafe'f00d) == PacketStatus::ok);
  CHECK(dwords(p) == Dwords{0x0000'0005, 0x0000'100c, 0x0000'7ffe, 0xcafe'f00d});
  CHECK(build_fence(p, kWord + 2, 1) == PacketStatus::misaligned);
  CHECK(build_fence(p, 0, 1) == PacketStatus::null_address);
}

TEST_CASE("ATOMIC: 64-bit add is operation 47 in bits 31:25 (table 1.15)") {
  AtomicPacket p{};
  REQUIRE(build_atomic_add(p, kWord, 0x0123'4567'89ab'cdef) == PacketStatus::ok);
  CHECK(
      dwords(p) ==
      Dwords{0x5e00'000a, 0x0000'1008, 0x0000'7ffe, 0x89ab'cdef, 0x0123'4567, 0, 0, 0});
  CHECK(build_atomic_add(p, kWord + 4, 1) == PacketStatus::misaligned);
  CHECK(build_atomic_add(p, 0, 1) == PacketStatus::null_address);
}

TEST_CASE("POLL_REGMEM: memory, >=, interval 4, retry for ever (table 1.13)") {
  PollPacket p{};
  REQUIRE(build_poll(p, kWord + 4, 0x8000'0001) == PacketStatus::ok);
  CHECK(
      dwords(p) ==
      Dwords{0xd000'0008, 0x0000'100c, 0x0000'7ffe, 0x8000'0001, 0xffff'ffff, 0x0fff'0004});
  CHECK(build_poll(p, kWord + 1, 1) == PacketStatus::misaligned);
  CHECK(build_poll(p, 0, 1) == PacketStatus::null_address);
}

TEST_CASE("POLL_MEM_64B: sub-op 5, >=, system scope (table 1.14)") {
  Poll64Packet p{};
  REQUIRE(build_poll64(p, kWord, 0x0000'0001'0000'0002) == PacketStatus::ok);
  CHECK(
      dwords(p) == Dwords{
                       0x5000'0508, 0x0000'1008, 0x0000'7ffe, 0x0000'0002, 0x0000'0001, 0xffff'ffff,
                       0xffff'ffff, 0x30ff'0000});
  CHECK(build_poll64(p, kWord + 4, 1) == PacketStatus::misaligned);
  CHECK(build_poll64(p, 0, 1) == PacketStatus::null_address);
}

TEST_CASE("TRAP: 28-bit context (table 1.12)") {
  TrapPacket p{};
  REQUIRE(build_trap(p, 0x0fff'fffe) == PacketStatus::ok);
  CHECK(dwords(p) == Dwords{0x0000'0006, 0x0fff'fffe});
  CHECK(build_trap(p, 0x0fff'ffff) == PacketStatus::ok);
  CHECK(build_trap(p, 0x1000'0000) == PacketStatus::too_long);
}

TEST_CASE("CONST_FILL: dwords, bytes - 1, 22 bits (table 1.10)") {
  FillPacket p{};
  REQUIRE(build_fill(p, kWord + 4, 0xa5a5'5a5a, 4096) == PacketStatus::ok);
  CHECK(dwords(p) == Dwords{0x8000'000b, 0x0000'100c, 0x0000'7ffe, 0xa5a5'5a5a, 0x0000'0fff});
  CHECK(build_fill(p, kWord, 1, 0x40'0000 - 4) == PacketStatus::ok);
  CHECK(build_fill(p, kWord, 1, 0x40'0000) == PacketStatus::ok);
  CHECK(p.dw[4] == 0x003f'ffff);
  CHECK(build_fill(p, kWord, 1, 0x40'0004) == PacketStatus::too_long);
  CHECK(build_fill(p, kWord, 1, 0) == PacketStatus::zero_bytes);
  CHECK(build_fill(p, kWord, 1, 6) == PacketStatus::misaligned);
  CHECK(build_fill(p, kWord + 2, 1, 8) == PacketStatus::misaligned);
  CHECK(build_fill(p, 0, 1, 8) == PacketStatus::null_address);
}

TEST_CASE("WRITE_LINEAR: dwords - 1 in 20 bits (table 1.9)") {
  WriteHeader p{};
  REQUIRE(build_write(p, kWord + 4, 3) == PacketStatus::ok);
  CHECK(dwords(p) == Dwords{0x0000'0002, 0x0000'100c, 0x0000'7ffe, 0x0000'0002});
  CHECK(build_write(p, kWord, 0xf'ffff) == PacketStatus::ok);
  CHECK(build_write(p, kWord, 0x10'0000) == PacketStatus::ok);
  CHECK(p.dw[3] == 0x000f'ffff);
  CHECK(build_write(p, kWord, 0x10'0001) == PacketStatus::too_long);
  CHECK(build_write(p, kWord, 0) == PacketStatus::zero_bytes);
  CHECK(build_write(p, kWord + 2, 1) == PacketStatus::misaligned);
  CHECK(build_write(p, 0, 1) == PacketStatus::null_address);
}

TEST_CASE("the table knows every packet by its first dword, with length and name") {
  struct Expected {
    Dwords dw;
    std::uint64_t dwords;
    std::string name;
  };
  const Expected all[] = {
      {{0x0000'0001, 0, 0, 0, 0, 0, 0}, 7, "COPY_LINEAR"},
      {{0x0000'0002, 0, 0, 4}, 9, "WRITE_LINEAR"},
      {{0x0000'0005, 0, 0, 0}, 4, "FENCE"},
      {{0x0000'0006, 0}, 2, "TRAP"},
      {{0xd000'0008, 0, 0, 0, 0, 0}, 6, "POLL_REGMEM"},
      {{0x5000'0508, 0, 0, 0, 0, 0, 0, 0}, 8, "POLL_MEM_64B"},
      {{0x5e00'000a, 0, 0, 0, 0, 0, 0, 0}, 8, "ATOMIC"},
      {{0x8000'000b, 0, 0, 0, 0}, 5, "CONST_FILL"},
      {{0x0000'0000}, 1, "NOP"},
      {{0x3fff'0000}, 16384, "NOP"},
  };
  for (const Expected& e : all) {
    const PacketInfo* const info = find_packet(e.dw[0]);
    REQUIRE(info != nullptr);
    CHECK(packet_dwords(*info, e.dw.data()) == e.dwords);
    CHECK(packet_name(e.dw[0]) == e.name);
  }
  CHECK(find_packet(0x0000'0901) == nullptr); // COPY SWAP
  CHECK(find_packet(0x0000'0205) == nullptr); // 64-bit FENCE
  CHECK(std::string(packet_name(0x0000'00ff)) == "unknown packet");
}

TEST_CASE("builders work at compile time") {
  constexpr CopyPacket packet = [] {
    CopyPacket p{};
    const PacketStatus status = build_copy(p, 0x2000, 0x1000, 64);
    p.dw[2] = static_cast<std::uint32_t>(status);
    return p;
  }();
  static_assert(packet.dw[0] == 1 && packet.dw[1] == 63 && packet.dw[2] == 0);
  static_assert(packet.dw[3] == 0x1000 && packet.dw[5] == 0x2000);
  CHECK(packet.dw[6] == 0);
}
