// SPDX-License-Identifier: MIT
// What builders refuse on each generation, the table's own consistency, and dumps that are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/packet.hpp"
#include "device/packet_print.hpp"

using namespace ferry::device;
using Dwords = std::vector<std::uint32_t>;
using G = Generation;
using S = PacketStatus;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kA = 0x10000;
constexpr std::uint64_t kB = 0x20000;

template <G generation>
S copy_of(std::uint64_t bytes) {
  CopyPacket p{};
  return Build<generation>::copy(p, kA, kB, bytes);
}
template <G generation>
S fill_of(std::uint64_t bytes) {
  FillPacket p{};
  return Build<generation>::fill(p, kA, 1, bytes);
}
template <G generation>
S swap_of(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) {
  SwapPacket p{};
  return Build<generation>::swap(p, a, b, bytes);
}
template <G generation>
S tile_of(const Subwindow& to, const Rect& rect, std::uint32_t element = 0) {
  SubwindowPacket p{};
  return Build<generation>::subwindow(p, to, {kB, 0, 0, 0, 64, 64}, rect, element);
}
S large_of(const Subwindow& to, const Rect& rect) {
  SubwindowLargePacket p{};
  return Build<G::gfx942>::subwindow_large(p, to, {kB, 0, 0, 0, 64}, rect);
}
template <G generation>
S atomic_of(AtomicOperation op, std::uint64_t bytes, std::uint64_t at, std::uint64_t value) {
  AtomicPacket p{};
  return Build<generation>::atomic(p, op, bytes, false, at, value);
}
S fused_of(const CopyRange& range, std::uint64_t wait, std::uint64_t signal) {
  CopyWaitSignalPacket p{};
  return Build<G::gfx1250>::copy_wait_signal(p, range, {wait, 1}, {signal, 1});
}

std::vector<std::string> lines_of(const Dwords& ring, G generation, bool clean) {
  std::vector<std::string> lines;
  CHECK(print_ring(ring, generation, [&](const std::string& l) { lines.push_back(l); }) == clean);
  return lines;
}

} // namespace

TEST_CASE("copies: limit - 1, limit, limit + 1 on each generation (1.19, 1.20)") {
  CHECK(copy_of<G::gfx90a>(4 * kMiB - 1) == S::ok);
  CHECK(copy_of<G::gfx90a>(4 * kMiB) == S::ok);
  CHECK(copy_of<G::gfx90a>(4 * kMiB + 1) == S::too_long);
  CHECK(copy_of<G::gfx942>(1024 * kMiB) == S::ok);
  CHECK(copy_of<G::gfx942>(1024 * kMiB + 1) == S::too_long);
  CHECK(copy_of<G::gfx950>(1024 * kMiB - 1) == S::ok);
  CHECK(copy_of<G::gfx950>(1024 * kMiB + 1) == S::too_long);
  CHECK(copy_of<G::gfx1250>(1024 * kMiB) == S::ok);
  CHECK(copy_of<G::gfx1250>(1024 * kMiB + 1) == S::too_long);
  CHECK(copy_of<G::gfx1250>(0) == S::zero_bytes);
  CopyTwoPacket two{};
  CHECK(Build<G::gfx942>::copy_two(two, kA, kA + 64, kB + 1, 1024 * kMiB) == S::ok);
  CHECK(Build<G::gfx942>::copy_two(two, kA, kA + 64, kB, 1024 * kMiB + 1) == S::too_long);
  CHECK(Build<G::gfx90a>::copy_two(two, kA, kA + 64, kB, 4 * kMiB + 1) == S::too_long);
  CHECK(Build<G::gfx942>::copy_two(two, kA + 16, kA + 64, kB, 8) == S::misaligned);
  CHECK(Build<G::gfx942>::copy_two(two, kA, kA + 63, kB, 8) == S::misaligned);
  CHECK(Build<G::gfx942>::copy_two(two, kA, 0, kB, 8) == S::null_address);
  CHECK(Build<G::gfx942>::copy_two(two, kA, kA + 64, kB, 0) == S::zero_bytes);
}

TEST_CASE("fills and swaps: limits and units of each generation (1.5, 1.10)") {
  CHECK(fill_of<G::gfx942>(4 * kMiB - 4) == S::ok);
  CHECK(fill_of<G::gfx942>(4 * kMiB) == S::ok);
  CHECK(fill_of<G::gfx942>(4 * kMiB + 4) == S::too_long);
  CHECK(fill_of<G::gfx1250>(1024 * kMiB) == S::ok);
  CHECK(fill_of<G::gfx1250>(1024 * kMiB + 4) == S::too_long);
  CHECK(fill_of<G::gfx1250>(6) == S::misaligned);
  CHECK(swap_of<G::gfx90a>(kA, kB, 64) == S::unsupported);
  CHECK(swap_of<G::gfx942>(kA, kB, 64) == S::ok);
  CHECK(swap_of<G::gfx942>(kA, kB, 32) == S::misaligned);
  CHECK(swap_of<G::gfx950>(kA + 32, kB, 64) == S::misaligned);
  CHECK(swap_of<G::gfx950>(kA, kB + 32, 64) == S::misaligned);
  CHECK(swap_of<G::gfx1250>(kA + 32, kB, 32) == S::ok);
  CHECK(swap_of<G::gfx1250>(kA + 16, kB, 32) == S::misaligned);
  CHECK(swap_of<G::gfx1250>(kA, kB, 0x3fff'ffe0) == S::ok);
  CHECK(swap_of<G::gfx1250>(kA, kB, 0x4000'0000) == S::too_long);
  CHECK(swap_of<G::software>(kA + 1, kB + 3, 5) == S::ok);
  CHECK(swap_of<G::software>(kA, kB, 0) == S::zero_bytes);
  CHECK(swap_of<G::software>(0, kB, 64) == S::null_address);
}

TEST_CASE("sub-windows: rects, positions and pitches at their widths (1.7, 1.8)") {
  const Subwindow to{kA, 0, 0, 0, 64, 64};
  CHECK(tile_of<G::gfx942>(to, {1 << 14, 1 << 14, 1 << 11}) == S::ok);
  CHECK(tile_of<G::gfx942>(to, {(1 << 14) + 1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>(to, {1, (1 << 14) + 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>(to, {1, 1, (1 << 11) + 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>(to, {0, 1, 1}) == S::zero_bytes);
  CHECK(tile_of<G::gfx1250>(to, {1 << 16, 1 << 16, 1 << 14}) == S::ok);
  CHECK(tile_of<G::gfx1250>(to, {(1 << 16) + 1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>({kA, (1 << 14) - 1, 0, 0, 1 << 19, 1 << 28}, {1, 1, 1}) == S::ok);
  CHECK(tile_of<G::gfx942>({kA, 1 << 14, 0, 0, 64, 64}, {1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>({kA, 0, 0, 0, (1 << 19) + 4, 64}, {1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>({kA, 0, 0, 0, 64, (1 << 28) + 4}, {1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx1250>({kA, 0, 0, 0, (1 << 16) + 4, 64}, {1, 1, 1}) == S::too_long);
  CHECK(tile_of<G::gfx942>({kA, 0, 0, 0, 62, 64}, {1, 1, 1}) == S::misaligned);
  CHECK(tile_of<G::gfx942>({kA, 0, 0, 0, 62, 64}, {1, 1, 1}, 1) == S::ok); // 124 bytes
  CHECK(tile_of<G::gfx942>({kA, 0, 0, 0, 64, 66}, {1, 1, 2}) == S::misaligned);
  CHECK(tile_of<G::gfx942>({kA + 2, 0, 0, 0, 64, 64}, {1, 1, 1}) == S::misaligned);
  CHECK(tile_of<G::gfx942>(to, {1, 1, 1}, 4) == S::ok);
  CHECK(tile_of<G::gfx942>(to, {1, 1, 1}, 5) == S::too_long);
  CHECK(large_of({kA + 1, 0, 0, 0, 1ull << 32}, {1ull << 32, 1ull << 32, 1}) == S::ok);
  CHECK(large_of({kA, 0, 0, 0, (1ull << 32) + 1}, {1, 1, 1}) == S::too_long);
  CHECK(large_of({kA, 1ull << 32, 0, 0, 64}, {1, 1, 1}) == S::too_long);
  CHECK(large_of({kA, 0, 0, 0, 64}, {1, (1ull << 32) + 1, 1}) == S::too_long);
  CHECK(large_of({kA, 0, 0, 0, 64}, {1, 1, 2}) == S::unsupported);
  CHECK(large_of({kA, 0, 0, 0, 0}, {1, 1, 1}) == S::zero_bytes);
}

TEST_CASE("words: alignment, null, width; operations that a generation lacks (1.11 to 1.16)") {
  Fence64Packet fence{};
  CHECK(Build<G::gfx1250>::fence64(fence, kA + 4, 1) == S::misaligned);
  CHECK(Build<G::gfx1250>::fence64(fence, 0, 1) == S::null_address);
  TimestampPacket stamp{};
  CHECK(Build<G::gfx942>::timestamp(stamp, kA + 32) == S::ok);
  CHECK(Build<G::gfx942>::timestamp(stamp, kA + 16) == S::misaligned);
  Poll64Packet poll{};
  CHECK(Build<G::gfx950>::poll64(poll, kA, 1) == S::unsupported);
  using Op = AtomicOperation;
  CHECK(atomic_of<G::gfx942>(Op::add, 4, kA + 4, 0xffff'ffff) == S::ok);
  CHECK(atomic_of<G::gfx942>(Op::add, 4, kA + 4, 0x1'0000'0000) == S::too_long);
  CHECK(atomic_of<G::gfx942>(Op::add, 8, kA + 4, 1) == S::misaligned);
  CHECK(atomic_of<G::gfx942>(Op::add, 2, kA, 1) == S::unsupported);
  CHECK(atomic_of<G::gfx942>(Op::add, 8, 0, 1) == S::null_address);
  CHECK(atomic_of<G::gfx942>(static_cast<Op>(9), 8, kA, 1) == S::unsupported);
  CHECK(atomic_of<G::gfx942>(Op::float_max, 8, kA, 1) == S::ok);
  CHECK(atomic_of<G::software>(Op::float_max, 8, kA, 1) == S::unsupported);
  CHECK(atomic_of<G::gfx942>(Op::add_float, 4, kA, 1) == S::unsupported);
  CHECK(atomic_of<G::gfx1250>(Op::add_float, 4, kA, 1) == S::ok);
  CHECK(atomic_of<G::gfx1250>(Op::add_float, 8, kA, 1) == S::unsupported);
}

TEST_CASE("fused copies: capped, and never without an address (1.18, 6.1)") {
  const CopyRange good{kA, kB, 128 * kMiB};
  CHECK(fused_of(good, kA, kB) == S::ok);
  CHECK(fused_of({kA, kB, 128 * kMiB + 1}, kA, kB) == S::too_long);
  CHECK(fused_of({kA, kB, 0}, kA, kB) == S::zero_bytes);
  CHECK(fused_of(good, 0, kB) == S::null_address);
  CHECK(fused_of(good, kA, 0) == S::null_address);
  CHECK(fused_of(good, kA + 4, kB) == S::misaligned);
  CHECK(fused_of(good, kA, kB + 4) == S::misaligned);
  CopyWaitPacket wait{};
  CHECK(Build<G::gfx950>::copy_wait(wait, good, {kA, 1}) == S::unsupported);
}

TEST_CASE("the 7-bit operation (1.15)") {
  using Op = AtomicOperation;
  CHECK(atomic_code(Op::swap, 4, true) == 7);
  CHECK(atomic_code(Op::compare_swap, 8, true) == 40);
  CHECK(atomic_code(Op::add, 8, true) == 47);
  CHECK(atomic_code(Op::add, 8, false) == 111);
  CHECK(atomic_code(Op::sub, 4, false) == 80);
  CHECK(atomic_code(Op::unsigned_max, 8, true) == 52);
  CHECK(atomic_code(Op::bit_xor, 8, false) == 119);
  CHECK(atomic_code(Op::decrement, 8, false) == 121);
  CHECK(std::string(atomic_name(118)) == "or");
  CHECK(atomic_name(9) == nullptr);
}

TEST_CASE("no bit of a packet belongs to two fields") {
  for (const Packet& packet : kPacketTable) {
    for (const GenerationInfo& info : kGenerations) {
      Dwords taken(packet.dwords(), 0);
      taken[0] = 0xffffu | packet.select_mask;
      for_each_field(packet, info.generation, [&](const Field& field, std::size_t base) {
        CAPTURE(packet.name);
        CAPTURE(field_name(field.id));
        for (std::size_t i = 0; i <= (field.bits > 32 ? 1u : 0u); ++i) {
          const std::size_t dword = base + field.dword + i;
          REQUIRE(dword < taken.size());
          CHECK((taken[dword] & field_bits(field, i)) == 0);
          taken[dword] |= field_bits(field, i);
        }
      });
    }
  }
}

TEST_CASE("a field of 48 bits keeps to its dwords (1.8)") {
  const Field field =
      field_of(packet_of(PacketKind::subwindow_large), G::gfx942, FieldId::source_slice_pitch);
  Dwords dw(20, 0);
  store_value(field, dw.data(), 0xabcd'1234'5678);
  CHECK(dw[7] == 0x1234'5678);
  CHECK(dw[8] == 0x0000'abcd);
  CHECK(std::count(dw.begin(), dw.end(), 0u) == 18);
  dw[8] |= 0xffff'0000;
  CHECK(field_value(field, dw.data()) == 0xabcd'1234'5678);
  CHECK(max_stored(field) == 0xffff'ffff'ffff);
}

TEST_CASE("a dump names what it does not know, with its offset") {
  using Lines = std::vector<std::string>;
  CHECK(
      lines_of({0, 0, 0, 6, 1, 0}, G::gfx942, true) ==
      Lines{"0x00000000 NOP dwords=1 x3", "0x0000000c TRAP context=1", "0x00000014 NOP dwords=1"});
  CHECK(
      lines_of({6, 1, 0x0000'00ff, 0}, G::gfx942, false) ==
      Lines{"0x00000000 TRAP context=1", "0x00000008 unknown packet 0x000000ff"});
  CHECK(
      lines_of({5, 8, 0}, G::gfx942, false) == Lines{"0x00000000 FENCE is cut off: 3 of 4 dwords"});
  CHECK(
      lines_of({2, 8, 0, 2, 7, 7}, G::gfx942, false) ==
      Lines{"0x00000000 WRITE_LINEAR is cut off: 6 of 7 dwords"});
  CHECK(
      lines_of({0x0000'0901, 0, 0, 0, 0, 0, 0}, G::gfx90a, false) ==
      Lines{"0x00000000 unknown packet 0x00000901"});
  CHECK(
      lines_of({0x4000'0001, 0, 0, 0, 0, 0, 0}, G::gfx950, false) ==
      Lines{"0x00000000 unknown packet 0x40000001"});
  CHECK(
      lines_of({0x0000'0005, 8, 0, 9}, G::gfx1250, true) ==
      Lines{"0x00000000 FENCE scope=cu word=0x8 value=0x9"});
  CHECK(
      lines_of({0x0300'0005, 8, 0, 9, 6, 1}, G::gfx942, false) ==
      Lines{
          "0x00000000 FENCE word=0x8 value=0x9 undefined[0]=0x03000000",
          "0x00000010 TRAP context=1"});
  CHECK(
      lines_of({0x1200'000a, 8, 0, 1, 0, 0, 0, 0}, G::gfx942, true) ==
      Lines{"0x00000000 ATOMIC operation=9(unknown) word=0x8 value=0x1 compare=0x0"});
  CHECK(lines_of({}, G::gfx942, true).empty());
}
