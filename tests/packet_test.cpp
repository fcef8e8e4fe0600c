// SPDX-License-Identifier: MIT
// Dwords written by hand from the packet tables of gfx9; the name of each case has its table. Then
// the reader of packets, against packets that are as odd as they come.
#include "device/packet.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "device/copy.hpp"
#include "lib/engine/decoder.hpp"
#include "lib/engine/queue.hpp"

using namespace ferry::core;
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

std::uint64_t at(const void* p) {
  return reinterpret_cast<std::uint64_t>(p);
}

// One packet, complete, on a decoder of its own.
template <class Packet>
StepState run(const WindowSet& windows, const Packet& packet) {
  Decoder decoder;
  decoder.set_windows(&windows);
  std::uint64_t used = 0;
  const StepState state = decoder.step(packet.dw, std::size(packet.dw), 64, &used);
  CHECK_MESSAGE(decoder.error().ok(), decoder.error().cause);
  CHECK(used == std::size(packet.dw));
  return state;
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

TEST_CASE("copies of odd sizes at odd addresses, and overlapping ones") {
  std::array<unsigned char, 1024> source{};
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<unsigned char>(i * 37 + (i >> 8));
  }
  std::array<unsigned char, 1024> target{};
  WindowSet windows;
  windows.add({at(source.data()), source.size(), false, 0, 0, 0, "source"});
  windows.add({at(target.data()), target.size(), true, 0, 0, 0, "target"});
  CopyPacket packet{};
  for (const std::size_t bytes : {1, 3, 7, 8, 9, 31, 33, 255, 257}) {
    for (const std::size_t shift : {0, 1, 5}) {
      target = {};
      REQUIRE(
          build_copy(packet, at(target.data() + shift), at(source.data() + 2 * shift), bytes) ==
          PacketStatus::ok);
      CHECK(run(windows, packet) == StepState::done);
      std::array<unsigned char, 1024> expected{};
      std::copy_n(source.data() + 2 * shift, bytes, expected.data() + shift);
      CHECK(target == expected);
    }
  }
}

TEST_CASE("copies of every kind move exactly their bytes") {
  for (const std::size_t size : {CopyLimits{}.rep_from, CopyLimits{}.stream_from}) {
    for (const std::size_t bytes : {size - 1, size, size + 1, size + 67}) {
      for (const std::size_t shift : {0, 1, 13}) {
        std::vector<unsigned char> source(bytes + 16);
        for (std::size_t i = 0; i < source.size(); ++i)
          source[i] = static_cast<unsigned char>(i * 37 + (i >> 8));
        std::vector<unsigned char> memory(bytes + 64, 0xc9);
        copy_bytes(memory.data() + 16 + shift, source.data() + 16 - shift, bytes);
        const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(16 + shift);
        const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
        CHECK(std::equal(begin, end, source.begin() + static_cast<std::ptrdiff_t>(16 - shift)));
        const auto guarded = [](unsigned char b) { return b == 0xc9; };
        CHECK(std::all_of(memory.begin(), begin, guarded));
        CHECK(std::all_of(end, memory.end(), guarded));
      }
    }
  }
}

TEST_CASE("an overlapping copy moves what was there before") {
  constexpr std::size_t kBytes = 20000;
  std::vector<unsigned char> before(2 * kBytes);
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] = static_cast<unsigned char>(i * 37 + (i >> 8));
  }
  for (const std::size_t bytes : {std::size_t{500}, kBytes}) {
    for (const std::size_t shift : {1, 3, 499}) {
      std::vector<unsigned char> memory = before;
      WindowSet windows;
      windows.add({at(memory.data()), memory.size(), true, 0, 0, 0, "memory"});
      CopyPacket packet{};
      REQUIRE(
          build_copy(packet, at(memory.data() + shift), at(memory.data()), bytes) ==
          PacketStatus::ok);
      CHECK(run(windows, packet) == StepState::done);
      CHECK(std::equal(before.data(), before.data() + bytes, memory.data() + shift));
      memory = before;
      REQUIRE(
          build_copy(packet, at(memory.data()), at(memory.data() + shift), bytes) ==
          PacketStatus::ok);
      CHECK(run(windows, packet) == StepState::done);
      CHECK(std::equal(before.data() + shift, before.data() + shift + bytes, memory.data()));
    }
  }
}

TEST_CASE("the functions of a poll") {
  const bool expected[7][3] = {{true, true, true},   {true, false, false}, {true, true, false},
                               {false, true, false}, {true, false, true},  {false, true, true},
                               {false, false, true}};
  std::uint64_t word = 0;
  WindowSet windows;
  windows.add({at(&word), 8, false, 0, 0, 0, "word"});
  Poll64Packet wide{};
  PollPacket narrow{};
  REQUIRE(build_poll64(wide, at(&word), 5) == PacketStatus::ok);
  REQUIRE(build_poll(narrow, at(&word), 5) == PacketStatus::ok);
  wide.dw[5] = narrow.dw[4] = 0xff; // the mask hides what is above
  wide.dw[6] = 0;
  for (std::uint32_t function = 0; function < 7; ++function) {
    wide.dw[0] = 0x0000'0508 | function << 28;
    narrow.dw[0] = 0x8000'0008 | function << 28;
    for (std::uint32_t value = 4; value <= 6; ++value) {
      word = 0x1234'5678'9abc'de00 + value;
      const bool holds = expected[function][value - 4];
      CHECK(run(windows, wide) == (holds ? StepState::done : StepState::blocked));
      CHECK(run(windows, narrow) == (holds ? StepState::done : StepState::blocked));
    }
  }
}

TEST_CASE("random dwords and doorbells write inside the windows only") {
  std::mt19937 random(11);
  int failures = 0;
  for (int round = 0; round < 3000; ++round) {
    std::array<unsigned char, 512> memory{};
    WindowSet windows;
    windows.add({at(memory.data()) + 128, 256, true, 0, 0, 0, "middle"});
    Queue queue(4096);
    queue.set_windows(&windows);
    const std::uint32_t heads[] = {1, 2, 5, 6, 8, 0x5e00'000a, 0x8000'000b, 0x5000'0508};
    for (std::size_t i = 0; i < 1024; i += 1 + random() % 9) {
      queue.image()[i] = random() % 8 != 0 ? heads[random() % 8] : static_cast<unsigned>(random());
      for (std::size_t j = i + 1; j + 1 < std::min<std::size_t>(i + 8, 1024); j += 2) {
        const std::uint64_t address = at(memory.data()) + random() % 600;
        queue.image()[j] = random() % 4 != 0 ? static_cast<unsigned>(address)
                                             : static_cast<unsigned>(random() % 300);
        queue.image()[j + 1] = static_cast<unsigned>(address >> 32);
      }
    }
    queue.publish(random() % 16 != 0 ? random() % 1024 * 4 : random());
    failures += queue.consume(200) == QueueState::failed;
    for (std::size_t i = 0; i < 512; ++i) {
      if (i < 128 || i >= 384) REQUIRE(memory[i] == 0);
    }
  }
  CHECK(failures > 1000);
}

TEST_CASE("windows: edges, overlaps, rights") {
  WindowSet set;
  set.add({1000, 100, false, 0, 0, 0, "low"});
  set.add({1000, 500, true, 1, 0, 0, "wide"});
  set.add({1200, 10, true, 2, 0, 0, "inner"});
  set.add({5000, 8, false, 3, 0, 0, "high"});
  const auto name = [&](std::uint64_t address, std::uint64_t bytes, bool write) {
    const Window* const w = set.find(address, bytes, write);
    return std::string(w != nullptr ? w->name : "none");
  };
  CHECK(name(1000, 500, true) == "wide");
  CHECK(name(1499, 1, false) == "wide");
  CHECK(name(1500, 1, false) == "none");
  CHECK(name(999, 1, false) == "none");
  CHECK(name(1205, 6, true) == "wide"); // begins in inner, ends beyond it
  CHECK(name(1050, 8, true) == "wide"); // low may not be written
  CHECK(name(1400, 200, false) == "none"); // reaches out of every window
  CHECK(name(5000, 8, false) == "high");
  CHECK(name(5000, 8, true) == "none");
  CHECK(name(5001, ~std::uint64_t{0}, false) == "none");
  std::size_t hint = 77; // of no window
  const Window* const high = set.find(5004, 4, false, hint);
  CHECK(high == &set.windows()[hint]);
  CHECK(set.find(5004, 4, false, hint) == high);
  CHECK(set.find(1201, 1, true, hint)->base != 5000);
  CHECK_THROWS_AS(set.add({10, 0, true, 0, 0, 0, "empty"}), Failure);
  CHECK_THROWS_AS(set.add({10, ~std::uint64_t{0} - 5, true, 0, 0, 0, "wrap"}), Failure);
  CHECK_THROWS_AS(set.add({10, 1, true, 0, -1, 0, "pid"}), Failure);
  set.clear();
  CHECK(name(1000, 1, false) == "none");
}
