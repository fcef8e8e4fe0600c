// SPDX-License-Identifier: MIT
// Every packet on every generation against dwords written by hand. Sections are those of the packet
// reference that tests/packet_test.cpp names as tables.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "device/packet.hpp"
#include "device/packet_print.hpp"
#include "lib/engine/decoder.hpp"

using namespace ferry::device;
using Dwords = std::vector<std::uint32_t>;

namespace {

constexpr std::uint64_t kFrom = 0x0000'1122'3344'5540;
constexpr std::uint64_t kTo = 0x0000'7f01'89ab'cdc0;
constexpr std::uint64_t kTo2 = 0x0000'7f02'0000'0040;
constexpr std::uint64_t kWord = 0x0000'7ffe'0000'1008;
constexpr std::uint64_t kWord2 = 0x0000'7ffd'0000'2010;
constexpr Subwindow kLeft{kTo, 9, 10, 11, 2000, 200000};
constexpr Subwindow kRight{kFrom, 5, 6, 7, 1000, 100000};
constexpr Generation kAll[] = {
    Generation::gfx90a, Generation::gfx942, Generation::gfx950, Generation::gfx1250,
    Generation::software};

struct Built {
  PacketStatus status;
  Dwords dw;
};

template <class Words, class... Parameters, class... Arguments>
Built built(PacketStatus (*build)(Words&, Parameters...), const Arguments&... arguments) {
  Words words{};
  const PacketStatus status = build(words, static_cast<Parameters>(arguments)...);
  return {status, Dwords(std::begin(words.dw), std::end(words.dw))};
}

template <Generation G>
Built build_nop_of(std::uint64_t dwords) {
  std::uint32_t header = 0;
  const PacketStatus status = Build<G>::nop(header, dwords);
  return {status, {header}};
}

// One call of the builder of each kind; a kind without a builder has no packet here and fails.
template <Generation G>
Built build_kind(PacketKind kind) {
  using B = Build<G>;
  const CopyRange range{kTo, kFrom, 4096};
  switch (kind) {
    case PacketKind::nop:
      return build_nop_of<G>(9);
    case PacketKind::copy:
      return built(B::copy, kTo, kFrom, 4096);
    case PacketKind::copy_two:
      return built(B::copy_two, kTo, kTo2, kFrom, 4096);
    case PacketKind::swap:
      return built(B::swap, kTo, kFrom, 4096);
    case PacketKind::subwindow:
      return built(B::subwindow, kLeft, kRight, Rect{16, 17, 18}, 2);
    case PacketKind::subwindow_large:
      return built(B::subwindow_large, kLeft, kRight, Rect{16, 17, 1});
    case PacketKind::write:
      return built(B::write, kWord, 3);
    case PacketKind::fill:
      return built(B::fill, kWord, 0xa5a5'5a5a, 4096);
    case PacketKind::fence:
      return built(B::fence, kWord, 0xcafe'f00d);
    case PacketKind::fence64:
      return built(B::fence64, kWord, 0x0123'4567'89ab'cdef);
    case PacketKind::trap:
      return built(B::trap, 0x0fff'fffe);
    case PacketKind::poll:
      return built(B::poll, kWord, 0x8000'0001);
    case PacketKind::poll64:
      return built(B::poll64, kWord, 0x0000'0001'0000'0002);
    case PacketKind::atomic:
      return built(B::atomic, AtomicOperation::add, 8, true, kWord, 0x0123'4567'89ab'cdef, 0);
    case PacketKind::timestamp:
      return built(B::timestamp, kTo);
    case PacketKind::copy_wait:
      return built(B::copy_wait, range, FusedWait{kWord, 7});
    case PacketKind::copy_signal:
      return built(B::copy_signal, range, FusedSignal{kWord2, 1});
    case PacketKind::copy_wait_signal:
      return built(B::copy_wait_signal, range, FusedWait{kWord, 7}, FusedSignal{kWord2, 1});
  }
  return {PacketStatus::ok, {}};
}

Built build_for(Generation generation, PacketKind kind) {
  switch (generation) {
    case Generation::gfx90a:
      return build_kind<Generation::gfx90a>(kind);
    case Generation::gfx942:
      return build_kind<Generation::gfx942>(kind);
    case Generation::gfx950:
      return build_kind<Generation::gfx950>(kind);
    case Generation::gfx1250:
      return build_kind<Generation::gfx1250>(kind);
    case Generation::software:
      return build_kind<Generation::software>(kind);
  }
  return {PacketStatus::unsupported, {}};
}

struct Golden {
  PacketKind kind;
  const char* generations; // one letter each: a 90a, 2 942, 5 950, 7 OSS 7, s software
  Dwords dw;
  const char* printed;
};

const Golden kGolden[] = {
    {PacketKind::nop, "a257s", {0x0008'0000}, "NOP dwords=9"}, // 1.2
    {PacketKind::copy, // 1.3
     "a25s",
     {0x0000'0001, 0x0000'0fff, 0, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01},
     "COPY_LINEAR bytes=4096 source=0x112233445540 destination=0x7f0189abcdc0"},
    {PacketKind::copy, // 1.3: npd, and both scopes
     "7",
     {0x1000'0001, 0x0000'0fff, 0x0c0c'0000, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01},
     "COPY_LINEAR npd=1 bytes=4096 destination_scope=system source_scope=system "
     "source=0x112233445540 destination=0x7f0189abcdc0"},
    {PacketKind::copy_two, // 1.4
     "a25s",
     {0x0800'0001, 0x0000'0fff, 0, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01, 0x0000'0040,
      0x0000'7f02},
     "COPY_LINEAR_BROADCAST bytes=4096 source=0x112233445540 destination=0x7f0189abcdc0 "
     "destination_2=0x7f0200000040"},
    {PacketKind::swap, // 1.5
     "257s",
     {0x0000'0901, 0x0000'0fff, 0, 0x89ab'cdc0, 0x0000'7f01, 0x3344'5540, 0x0000'1122},
     "COPY_SWAP bytes=4096 first=0x7f0189abcdc0 second=0x112233445540"},
    {PacketKind::subwindow, // 1.7
     "a25s",
     {0x4000'0401, 0x3344'5540, 0x0000'1122, 0x0006'0005, 0x007c'e007, 0x0001'869f, 0x89ab'cdc0,
      0x0000'7f01, 0x000a'0009, 0x00f9'e00b, 0x0003'0d3f, 0x0010'000f, 0x0000'0011},
     "COPY_LINEAR_SUBWINDOW element_log2=2 source=0x112233445540 source_x=5 source_y=6 source_z=7 "
     "source_pitch=1000 source_slice_pitch=100000 destination=0x7f0189abcdc0 destination_x=9 "
     "destination_y=10 destination_z=11 destination_pitch=2000 destination_slice_pitch=200000 "
     "rect_x=16 rect_y=17 rect_z=18"},
    {PacketKind::subwindow, // 1.7: other positions of pitches; npd, scopes
     "7",
     {0x5000'0401, 0x3344'5540, 0x0000'1122, 0x0006'0005, 0x03e7'0007, 0x0001'869f, 0x89ab'cdc0,
      0x0000'7f01, 0x000a'0009, 0x07cf'000b, 0x0003'0d3f, 0x0010'000f, 0x0c0c'0011},
     "COPY_LINEAR_SUBWINDOW npd=1 element_log2=2 source=0x112233445540 source_x=5 source_y=6 "
     "source_z=7 source_pitch=1000 source_slice_pitch=100000 destination=0x7f0189abcdc0 "
     "destination_x=9 destination_y=10 destination_z=11 destination_pitch=2000 "
     "destination_slice_pitch=200000 rect_x=16 rect_y=17 rect_z=18 destination_scope=system "
     "source_scope=system"},
    {PacketKind::subwindow_large, // 1.8
     "25s",
     {0x0000'2401, 0x3344'5540, 0x0000'1122, 5, 6,    0, 999, 0,  0,  0x89ab'cdc0,
      0x0000'7f01, 9,           10,          0, 1999, 0, 0,   15, 16, 0},
     "COPY_LINEAR_SUBWINDOW_LARGE source=0x112233445540 source_x=5 source_y=6 source_z=0 "
     "source_pitch=1000 source_slice_pitch=0 destination=0x7f0189abcdc0 destination_x=9 "
     "destination_y=10 destination_z=0 destination_pitch=2000 destination_slice_pitch=0 rect_x=16 "
     "rect_y=17 rect_z=1"},
    {PacketKind::write, // 1.9
     "a25s",
     {0x0000'0002, 0x0000'1008, 0x0000'7ffe, 0x0000'0002},
     "WRITE_LINEAR destination=0x7ffe00001008 dwords=3 data=0x00000000,0x00000001,0x00000002"},
    {PacketKind::write, // 1.9: scope 27:26
     "7",
     {0x0000'0002, 0x0000'1008, 0x0000'7ffe, 0x0c00'0002},
     "WRITE_LINEAR destination=0x7ffe00001008 dwords=3 scope=system "
     "data=0x00000000,0x00000001,0x00000002"},
    {PacketKind::fill, // 1.10
     "a25s",
     {0x8000'000b, 0x0000'1008, 0x0000'7ffe, 0xa5a5'5a5a, 0x0000'0fff},
     "CONST_FILL fill_size=2 destination=0x7ffe00001008 pattern=0xa5a55a5a bytes=4096"},
    {PacketKind::fill, // 1.10: scope 25:24, npd 29
     "7",
     {0xa300'000b, 0x0000'1008, 0x0000'7ffe, 0xa5a5'5a5a, 0x0000'0fff},
     "CONST_FILL scope=system npd=1 fill_size=2 destination=0x7ffe00001008 pattern=0xa5a55a5a "
     "bytes=4096"},
    {PacketKind::fence, // 1.11
     "a25s",
     {0x0000'0005, 0x0000'1008, 0x0000'7ffe, 0xcafe'f00d},
     "FENCE word=0x7ffe00001008 value=0xcafef00d"},
    {PacketKind::fence, // 1.11: scope 25:24
     "7",
     {0x0300'0005, 0x0000'1008, 0x0000'7ffe, 0xcafe'f00d},
     "FENCE scope=system word=0x7ffe00001008 value=0xcafef00d"},
    {PacketKind::fence64, // 1.11
     "7",
     {0x0300'0205, 0x0000'1008, 0x0000'7ffe, 0x89ab'cdef, 0x0123'4567},
     "FENCE_64B scope=system word=0x7ffe00001008 value=0x123456789abcdef"},
    {PacketKind::trap, "a257s", {0x0000'0006, 0x0fff'fffe}, "TRAP context=268435454"}, // 1.12
    {PacketKind::poll, // 1.13
     "a25s",
     {0xd000'0008, 0x0000'1008, 0x0000'7ffe, 0x8000'0001, 0xffff'ffff, 0x0fff'0004},
     "POLL_REGMEM function=>= memory=1 word=0x7ffe00001008 reference=0x80000001 mask=0xffffffff "
     "interval=4 retries=4095"},
    {PacketKind::poll, // 1.13: scope 29:28
     "7",
     {0xd000'0008, 0x0000'1008, 0x0000'7ffe, 0x8000'0001, 0xffff'ffff, 0x3fff'0004},
     "POLL_REGMEM function=>= memory=1 word=0x7ffe00001008 reference=0x80000001 mask=0xffffffff "
     "interval=4 retries=4095 scope=system"},
    {PacketKind::poll64, // 1.14
     "7s",
     {0x5000'0508, 0x0000'1008, 0x0000'7ffe, 0x0000'0002, 0x0000'0001, 0xffff'ffff, 0xffff'ffff,
      0x30ff'0000},
     "POLL_MEM_64B function=>= word=0x7ffe00001008 reference=0x100000002 mask=0xffffffffffffffff "
     "retries=255 scope=system"},
    {PacketKind::atomic, // 1.15
     "a25s",
     {0x5e00'000a, 0x0000'1008, 0x0000'7ffe, 0x89ab'cdef, 0x0123'4567, 0, 0, 0},
     "ATOMIC operation=add_64 word=0x7ffe00001008 value=0x123456789abcdef compare=0x0"},
    {PacketKind::atomic, // 1.15: scope 21:20
     "7",
     {0x5e30'000a, 0x0000'1008, 0x0000'7ffe, 0x89ab'cdef, 0x0123'4567, 0, 0, 0},
     "ATOMIC scope=system operation=add_64 word=0x7ffe00001008 value=0x123456789abcdef "
     "compare=0x0"},
    {PacketKind::timestamp, // 1.16
     "a25s",
     {0x0000'020d, 0x89ab'cdc0, 0x0000'7f01},
     "TIMESTAMP_GET_GLOBAL destination=0x7f0189abcdc0"},
    {PacketKind::timestamp, // 1.16: scope 25:24
     "7",
     {0x0300'020d, 0x89ab'cdc0, 0x0000'7f01},
     "TIMESTAMP_GET_GLOBAL scope=system destination=0x7f0189abcdc0"},
    {PacketKind::copy_wait, // 1.18 without the signal block
     "7",
     {0x5000'0001, 0x000c'0005, 0x0000'1008, 0x0000'7ffe, 7, 0, 0xffff'ffff, 0xffff'ffff,
      0x0000'0fff, 0x0c0c'0000, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01},
     "COPY_LINEAR_WAIT npd=1 wait_function=>= wait_scope=system wait_address=0x7ffe00001008 "
     "wait_reference=0x7 wait_mask=0xffffffffffffffff bytes=4096 destination_scope=system "
     "source_scope=system source=0x112233445540 destination=0x7f0189abcdc0"},
    {PacketKind::copy_signal, // 1.18 without the wait block
     "7",
     {0x9000'0001, 0x0000'0fff, 0x0c0c'0000, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01,
      0x000c'006f, 0x0000'2010, 0x0000'7ffd, 1, 0},
     "COPY_LINEAR_SIGNAL npd=1 bytes=4096 destination_scope=system source_scope=system "
     "source=0x112233445540 destination=0x7f0189abcdc0 signal_operation=add_64_no_return "
     "signal_scope=system signal_address=0x7ffd00002010 signal_value=0x1"},
    {PacketKind::copy_wait_signal, // 1.18, the full form
     "7",
     {0xd000'0001, 0x000c'0005, 0x0000'1008, 0x0000'7ffe, 7, 0, 0xffff'ffff, 0xffff'ffff,
      0x0000'0fff, 0x0c0c'0000, 0x3344'5540, 0x0000'1122, 0x89ab'cdc0, 0x0000'7f01, 0x000c'006f,
      0x0000'2010, 0x0000'7ffd, 1, 0},
     "COPY_LINEAR_WAIT_SIGNAL npd=1 wait_function=>= wait_scope=system wait_address=0x7ffe00001008 "
     "wait_reference=0x7 wait_mask=0xffffffffffffffff bytes=4096 destination_scope=system "
     "source_scope=system source=0x112233445540 destination=0x7f0189abcdc0 "
     "signal_operation=add_64_no_return signal_scope=system signal_address=0x7ffd00002010 "
     "signal_value=0x1"},
};

const Golden* golden_of(Generation generation, PacketKind kind) {
  const char letter = "a257s"[static_cast<int>(generation)];
  for (const Golden& golden : kGolden) {
    if (golden.kind == kind && std::string(golden.generations).find(letter) != std::string::npos) {
      return &golden;
    }
  }
  return nullptr;
}

} // namespace

TEST_CASE("every packet of the table is built as by hand, or refused, on every generation") {
  for (std::size_t i = 0; i < std::size(kPacketTable); ++i) {
    const Packet& packet = kPacketTable[i];
    REQUIRE(static_cast<std::size_t>(packet.kind) == i);
    for (const Generation generation : kAll) {
      CAPTURE(packet.name);
      CAPTURE(generation_info(generation).name);
      const Golden* const golden = golden_of(generation, packet.kind);
      const Built made = build_for(generation, packet.kind);
      REQUIRE(contains(packet.generations, generation) == (golden != nullptr));
      CHECK(made.status == (golden != nullptr ? PacketStatus::ok : PacketStatus::unsupported));
      CHECK(made.dw == (golden != nullptr ? golden->dw : Dwords(made.dw.size(), 0)));
    }
  }
}

TEST_CASE("what was built is printed with its fields, and is a line of a dump") {
  for (const Generation generation : kAll) {
    Dwords ring;
    std::vector<std::string> expected;
    for (const Packet& packet : kPacketTable) {
      Built made = build_for(generation, packet.kind);
      if (made.status != PacketStatus::ok) continue;
      const std::uint64_t all = packet_dwords(packet, generation, made.dw.data());
      for (std::uint32_t d = 0; made.dw.size() < all; ++d) made.dw.push_back(d);
      const PrintedPacket printed = print_packet(made.dw, generation);
      CHECK(printed.text == golden_of(generation, packet.kind)->printed);
      CHECK(printed.used == made.dw.size());
      CHECK(printed.clean);
      expected.push_back(detail::hex(ring.size() * 4, 8) + " " + printed.text);
      ring.insert(ring.end(), made.dw.begin(), made.dw.end());
      const PrintedPacket cut = print_packet(std::span(made.dw).first(all - 1), generation);
      CHECK(cut.used == 0);
      CHECK(cut.text.find(all > 1 ? " is cut off: " : "nothing") != std::string::npos);
    }
    std::vector<std::string> lines;
    CHECK(print_ring(ring, generation, [&](const std::string& line) { lines.push_back(line); }));
    CHECK(lines == expected);
  }
}

TEST_CASE("the decoder has a branch for every packet, which asks for windows before it touches") {
  for (const Generation generation : kAll) {
    for (const Packet& packet : kPacketTable) {
      Built made = build_for(generation, packet.kind);
      if (made.status != PacketStatus::ok) continue;
      CAPTURE(packet.name);
      made.dw.resize(packet_dwords(packet, generation, made.dw.data()));
      ferry::core::Decoder decoder;
      decoder.set_generation(generation);
      std::uint64_t used = 0;
      const auto state = decoder.step(made.dw.data(), made.dw.size(), made.dw.size(), &used);
      const bool touches = packet.kind != PacketKind::nop && packet.kind != PacketKind::trap;
      CHECK(state == (touches ? ferry::core::StepState::failed : ferry::core::StepState::done));
      const std::string& cause = decoder.error().cause;
      CHECK_MESSAGE((cause.find("window") != std::string::npos) == touches, cause);
      CHECK(used == made.dw.size());
    }
  }
}
