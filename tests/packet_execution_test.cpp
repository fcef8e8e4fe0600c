// SPDX-License-Identifier: MIT
// What the decoder does with the packets of a generation, beside plain loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "device/packet.hpp"
#include "lib/engine/decoder.hpp"
#include "lib/engine/queue.hpp"

using namespace ferry::core;
using namespace ferry::device;
using Dwords = std::vector<std::uint32_t>;
using Bytes = std::vector<unsigned char>;
using G = Generation;

namespace {

std::uint64_t at(const void* p) {
  return reinterpret_cast<std::uint64_t>(p);
}

template <class Words, class... Parameters, class... Arguments>
Dwords made(PacketStatus (*build)(Words&, Parameters...), const Arguments&... arguments) {
  Words words{};
  REQUIRE(build(words, static_cast<Parameters>(arguments)...) == PacketStatus::ok);
  return Dwords(std::begin(words.dw), std::end(words.dw));
}

// Memory that packets may touch, between canaries that they may not.
struct Memory {
  static constexpr std::size_t kBytes = 32768;
  static constexpr std::size_t kGuard = 4096;

  Memory() {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(i);
    windows.add({at(base()), kBytes, true, 1, 0, 0, "memory"});
    windows.add({at(fixed.data()), sizeof fixed, false, 1, 0, 0, "read-only"});
  }
  static unsigned char pattern(std::size_t i) {
    return static_cast<unsigned char>(i * 37 + (i >> 8));
  }
  unsigned char* base() { return bytes.data() + kGuard; }
  std::uint64_t address(std::size_t offset) { return at(base() + offset); }
  std::uint64_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint64_t*>(base() + offset);
  }
  bool guarded() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      const std::size_t j = kGuard + kBytes + i;
      if (bytes[i] != pattern(i) || bytes[j] != pattern(j)) return false;
    }
    return true;
  }
  StepState run(G generation, const Dwords& packet) {
    Decoder decoder;
    decoder.set_windows(&windows);
    decoder.set_generation(generation);
    decoder.set_hook({[](void* me, int) { ++static_cast<Memory*>(me)->woken; }, this}, 0);
    std::uint64_t used = 0;
    const StepState state = decoder.step(packet.data(), packet.size(), packet.size(), &used);
    cause = decoder.error().cause;
    if (state == StepState::done) CHECK(used == packet.size());
    CHECK(guarded());
    return state;
  }
  // The packet is refused with this text, and nothing was touched.
  void refuses(G generation, const Dwords& packet, const std::string& text) {
    CAPTURE(text);
    const std::vector<unsigned char> before(bytes.begin(), bytes.end());
    CHECK(run(generation, packet) == StepState::failed);
    CHECK_MESSAGE(cause.find(text) != std::string::npos, cause);
    CHECK(std::equal(before.begin(), before.end(), bytes.begin()));
  }

  alignas(64) std::array<unsigned char, kBytes + 2 * kGuard> bytes;
  alignas(64) std::array<std::uint64_t, 64> fixed{};
  WindowSet windows;
  std::string cause;
  int woken = 0;
};

} // namespace

TEST_CASE("copies of each generation, to one and to two destinations") {
  Memory m;
  using B = Build<G::gfx1250>;
  const Bytes source(m.base() + 1, m.base() + 1 + 5000);
  CHECK(m.run(G::gfx1250, made(B::copy, m.address(8001), m.address(1), 5000)) == StepState::done);
  CHECK(std::equal(source.begin(), source.end(), m.base() + 8001));
  using C = Build<G::gfx942>;
  const Dwords two = made(C::copy_two, m.address(16384), m.address(24576), m.address(1), 5000);
  CHECK(m.run(G::gfx942, two) == StepState::done);
  CHECK(std::equal(source.begin(), source.end(), m.base() + 16384));
  CHECK(std::equal(source.begin(), source.end(), m.base() + 24576));
  CHECK(m.base()[16384 + 5000] == Memory::pattern(Memory::kGuard + 16384 + 5000));
  m.refuses(G::gfx1250, two, "unknown packet 0x08000001 on gfx1250");
  m.refuses(G::gfx942, made(B::copy, m.address(0), m.address(1), 8), "not understood");
  m.refuses(
      G::gfx942, made(C::copy_two, m.address(0), m.address(32768 - 32), m.address(64), 33),
      "BROADCAST to 0x");
  m.refuses(
      G::gfx942, made(C::copy_two, m.address(0), at(m.fixed.data()), m.address(64), 8),
      "no writable window");
  Dwords odd = two;
  odd[7] += 16;
  m.refuses(G::gfx942, odd, "not aligned to 32 bytes");
}

TEST_CASE("SWAP exchanges every byte and no other") {
  using B = SoftwareBuild;
  for (const std::size_t bytes : {1, 7, 64, 4095, 4096, 4097, 12000}) {
    Memory m;
    const std::size_t a = 3;
    const std::size_t b = 16001;
    const Bytes before(m.base(), m.base() + Memory::kBytes);
    Bytes expected = before;
    for (std::size_t i = 0; i < bytes; ++i) {
      expected[a + i] = before[b + i];
      expected[b + i] = before[a + i];
    }
    CHECK(m.run(G::software, made(B::swap, m.address(a), m.address(b), bytes)) == StepState::done);
    CHECK(std::equal(expected.begin(), expected.end(), m.base()));
  }
  Memory m;
  m.refuses(G::software, made(B::swap, m.address(0), m.address(99), 100), "overlapping");
  m.refuses(G::software, made(B::swap, m.address(99), m.address(0), 100), "overlapping");
  m.refuses(G::software, made(B::swap, m.address(0), at(m.fixed.data()), 8), "no writable window");
  m.refuses(G::software, made(B::swap, m.address(32000), m.address(0), 769), "no writable window");
  m.refuses(G::gfx942, made(B::swap, m.address(0), m.address(64), 32), "units of 64 bytes");
  m.refuses(G::gfx90a, made(B::swap, m.address(0), m.address(64), 64), "unknown packet");
}

TEST_CASE("SUBWINDOW moves the elements of a box, as a plain loop does") {
  std::mt19937 random(5);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    Memory m;
    const auto log2 = static_cast<std::uint32_t>(below(5));
    const std::uint64_t unit = std::uint64_t{1} << log2;
    const Rect rect{1 + below(6), 1 + below(5), 1 + below(3)};
    const std::uint64_t pitch = 12 + 4 * below(2);
    const std::uint64_t slice = pitch * 8 + 4 * below(2);
    const Subwindow to{m.address(16384), below(4), below(3), below(2), pitch, slice};
    const Subwindow from{m.address(4), below(4), below(3), below(2), pitch + 4, slice + 32};
    Bytes expected(m.base(), m.base() + Memory::kBytes);
    const auto offset = [&](const Subwindow& s, std::uint64_t i, std::uint64_t j, std::uint64_t k) {
      return s.base - m.address(0) +
             (s.x + i + (s.y + j) * s.pitch + (s.z + k) * s.slice_pitch) * unit;
    };
    for (std::uint64_t k = 0; k < rect.z; ++k) {
      for (std::uint64_t j = 0; j < rect.y; ++j) {
        for (std::uint64_t i = 0; i < rect.x; ++i) {
          std::copy_n(m.base() + offset(from, i, j, k), unit, &expected[offset(to, i, j, k)]);
        }
      }
    }
    const bool oss7 = round % 2 == 0;
    const Dwords packet = oss7 ? made(Build<G::gfx1250>::subwindow, to, from, rect, log2)
                               : made(Build<G::gfx942>::subwindow, to, from, rect, log2);
    CHECK(m.run(oss7 ? G::gfx1250 : G::gfx942, packet) == StepState::done);
    CHECK(std::equal(expected.begin(), expected.end(), m.base()));
  }
}

TEST_CASE("SUBWINDOW and SUBWINDOW_LARGE look at every row before the first one moves") {
  Memory m;
  using B = SoftwareBuild;
  const Subwindow left{m.address(16384), 0, 0, 0, 1024, 1024};
  const Subwindow right{m.address(0), 0, 0, 0, 64, 64};
  // Row 16 of the destination would begin where the window ends.
  CHECK(m.run(G::software, made(B::subwindow, left, right, Rect{8, 16, 1}, 0)) == StepState::done);
  m.refuses(G::software, made(B::subwindow, left, right, Rect{8, 17, 1}, 0), "SUBWINDOW to row 0x");
  m.refuses(G::software, made(B::subwindow, right, left, Rect{8, 17, 1}, 0), "from row 0x");
  m.refuses(G::software, made(B::subwindow_large, left, right, Rect{8, 17, 1}), "LARGE to row 0x");
  m.refuses(
      G::software,
      made(B::subwindow_large, Subwindow{at(m.fixed.data()), 0, 0, 0, 64}, right, Rect{8, 2, 1}),
      "no writable window");
  const Subwindow to{m.address(20001), 5, 2, 0, 301};
  const Subwindow from{m.address(3), 1, 4, 0, 257};
  Bytes expected(m.base(), m.base() + Memory::kBytes);
  for (std::size_t y = 0; y < 19; ++y) {
    std::copy_n(m.base() + 3 + 1 + (4 + y) * 257, 77, &expected[20001 + 5 + (2 + y) * 301]);
  }
  const Dwords large = made(B::subwindow_large, to, from, Rect{77, 19, 1});
  CHECK(m.run(G::software, large) == StepState::done);
  CHECK(std::equal(expected.begin(), expected.end(), m.base()));
  Dwords deep = large;
  deep[19] = 1;
  m.refuses(G::software, deep, "more than one slice");
  m.refuses(G::gfx1250, large, "unknown packet");
}

TEST_CASE("integer atomics of both widths, returning or not") {
  using Op = AtomicOperation;
  struct Case {
    Op operation;
    std::uint32_t old, value, compare, after;
  };
  constexpr std::uint32_t kMinus = 0xffff'fffe; // -2
  const Case cases[] = {
      {Op::swap, 5, 9, 0, 9},
      {Op::compare_swap, 5, 9, 5, 9},
      {Op::compare_swap, 5, 9, 6, 5},
      {Op::add, 5, 9, 0, 14},
      {Op::sub, 5, 3, 0, 2},
      {Op::signed_min, 5, kMinus, 0, kMinus},
      {Op::unsigned_min, 5, kMinus, 0, 5},
      {Op::signed_max, 5, kMinus, 0, 5},
      {Op::unsigned_max, 5, kMinus, 0, kMinus},
      {Op::bit_and, 12, 10, 0, 8},
      {Op::bit_or, 12, 10, 0, 14},
      {Op::bit_xor, 12, 10, 0, 6},
      {Op::increment, 5, 6, 0, 6},
      {Op::increment, 6, 6, 0, 0},
      {Op::decrement, 5, 6, 0, 4},
      {Op::decrement, 0, 6, 0, 6},
      {Op::decrement, 7, 6, 0, 6},
  };
  for (const Case& c : cases) {
    for (const bool returns : {false, true}) {
      CAPTURE(atomic_name(static_cast<std::uint32_t>(c.operation)));
      Memory m;
      const auto wide = [](std::uint32_t v) { // sign extended
        return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(v)});
      };
      m.word(64) = 0xaaaa'aaaa'0000'0000 | c.old;
      const Dwords narrow =
          made(SoftwareBuild::atomic, c.operation, 4, returns, m.address(64), c.value, c.compare);
      CHECK(m.run(G::software, narrow) == StepState::done);
      CHECK(m.word(64) == (0xaaaa'aaaa'0000'0000 | c.after));
      m.word(64) = wide(c.old);
      const Dwords full = made(
          Build<G::gfx1250>::atomic, c.operation, 8, returns, m.address(64), wide(c.value),
          wide(c.compare));
      CHECK(m.run(G::gfx1250, full) == StepState::done);
      CHECK(m.word(64) == wide(c.after));
      CHECK(m.woken == 2);
    }
  }
  Memory m;
  m.refuses(
      G::gfx942, made(Build<G::gfx942>::atomic, Op::float_max, 8, true, m.address(64), 1, 0),
      "none of integers");
  m.refuses(
      G::software, made(SoftwareBuild::atomic, Op::add, 8, true, at(m.fixed.data()), 1, 0),
      "no writable window");
  Dwords looping = made(Build<G::gfx942>::atomic, Op::add, 8, true, m.address(64), 1, 0);
  looping[0] |= 1u << 16;
  m.refuses(G::gfx942, looping, "not understood");
}

TEST_CASE("FENCE_64B, WRITE, FILL, TIMESTAMP and polls of gfx1250") {
  Memory m;
  using B = Build<G::gfx1250>;
  CHECK(
      m.run(G::gfx1250, made(B::fence64, m.address(8), 0x0123'4567'89ab'cdef)) == StepState::done);
  CHECK(m.word(8) == 0x0123'4567'89ab'cdef);
  CHECK(m.run(G::gfx1250, made(B::fence, m.address(8), 7)) == StepState::done);
  CHECK(m.word(8) == 0x0123'4567'0000'0007);
  Dwords write = made(B::write, m.address(16), 2);
  write.insert(write.end(), {0x1111'1111, 0x2222'2222});
  CHECK(m.run(G::gfx1250, write) == StepState::done);
  CHECK(m.word(16) == 0x2222'2222'1111'1111);
  CHECK(m.run(G::gfx1250, made(B::fill, m.address(24), 0x0403'0201, 8)) == StepState::done);
  CHECK(m.word(24) == 0x0403'0201'0403'0201);
  CHECK(m.run(G::gfx1250, made(B::timestamp, m.address(32))) == StepState::done);
  const std::uint64_t first = m.word(32);
  CHECK(m.run(G::gfx1250, made(B::timestamp, m.address(32))) == StepState::done);
  CHECK(m.word(32) >= first);
  CHECK(first > 0);
  m.word(64) = 6;
  CHECK(m.run(G::gfx1250, made(B::poll, m.address(64), 7)) == StepState::blocked);
  CHECK(m.run(G::gfx1250, made(B::poll64, m.address(64), 6)) == StepState::done);
  m.refuses(G::gfx1250, made(B::fence64, at(m.fixed.data()), 1), "no writable window");
  Dwords bytewise = made(B::fill, m.address(24), 1, 8);
  bytewise[0] &= 0x3fff'ffff;
  m.refuses(G::gfx1250, bytewise, "not one of dwords");
}

TEST_CASE("a fused copy waits, moves and signals, in this order") {
  Memory m;
  using B = Build<G::gfx1250>;
  const Bytes source(m.base() + 1000, m.base() + 3000);
  m.word(64) = 6;
  m.word(128) = 40;
  const CopyRange range{m.address(8001), m.address(1000), 2000};
  const Dwords packet =
      made(B::copy_wait_signal, range, FusedWait{m.address(64), 7}, FusedSignal{m.address(128), 2});
  CHECK(m.run(G::gfx1250, packet) == StepState::blocked);
  CHECK(m.base()[8001] == Memory::pattern(Memory::kGuard + 8001));
  CHECK(m.word(128) == 40);
  m.word(64) = 7;
  CHECK(m.run(G::gfx1250, packet) == StepState::done);
  CHECK(std::equal(source.begin(), source.end(), m.base() + 8001));
  CHECK(m.word(128) == 42);
  const CopyRange next{m.address(16001), m.address(1000), 2000};
  const Dwords signals = made(B::copy_signal, next, FusedSignal{m.address(128), 3});
  CHECK(m.run(G::gfx1250, signals) == StepState::done);
  CHECK(m.word(128) == 45);
  const Dwords waits = made(B::copy_wait, next, FusedWait{m.address(64), 8});
  CHECK(m.run(G::gfx1250, waits) == StepState::blocked);
  const FusedSignal nowhere{at(m.fixed.data()), 1};
  m.refuses(G::gfx1250, made(B::copy_signal, next, nowhere), "no writable window");
  m.refuses(G::gfx942, packet, "unknown packet");
  m.refuses(G::gfx1250, Dwords(packet.begin(), packet.end() - 1), "cut off by the doorbell");
}

TEST_CASE("random dwords behind known headers stay inside the windows, on every generation") {
  std::mt19937 random(23);
  Memory m;
  int done = 0;
  int failed = 0;
  for (int round = 0; round < 20000; ++round) {
    const Packet& packet = kPacketTable[random() % std::size(kPacketTable)];
    const auto generation = static_cast<G>(random() % std::size(kGenerations));
    Dwords dw(packet.dwords() + random() % 3, 0);
    for (std::uint32_t& d : dw) d = static_cast<std::uint32_t>(random() % 200);
    dw[0] = packet.op | std::uint32_t{packet.sub_op} << 8 | packet.select;
    for_each_field(packet, generation, [&](const Field& field, std::size_t base) {
      if (field.meaning != Meaning::address || random() % 8 == 0) return;
      const std::uint64_t place = m.address(0) - 256 + random() % (Memory::kBytes + 256) / 32 * 32;
      dw[base + field.dword] = static_cast<std::uint32_t>(place);
      dw[base + field.dword + 1] = static_cast<std::uint32_t>(place >> 32);
    });
    for (std::size_t i = 0; i < packet.dwords(); ++i) dw[i] &= defined_bits(packet, generation, i);
    if (random() % 4 == 0) dw[0] |= static_cast<std::uint32_t>(random()) << 16;
    Decoder decoder;
    decoder.set_windows(&m.windows);
    decoder.set_generation(generation);
    std::uint64_t used = 0;
    const StepState state = decoder.step(dw.data(), dw.size(), dw.size(), &used);
    done += state == StepState::done;
    failed += state == StepState::failed;
    REQUIRE(m.guarded());
  }
  CHECK(done > 2000);
  CHECK(failed > 2000);
  CHECK(m.fixed == std::array<std::uint64_t, 64>{});
}

TEST_CASE("packet execution: a queue takes the packets of the generation that it was told") {
  for (const G generation : {G::gfx942, G::gfx90a}) {
    Memory m;
    Queue queue(256);
    queue.set_windows(&m.windows);
    queue.set_generation(generation);
    const auto before = m.word(64);
    const Dwords swap = made(Build<G::gfx942>::swap, m.address(0), m.address(64), 64);
    std::copy(swap.begin(), swap.end(), queue.image());
    queue.publish(swap.size() * sizeof(std::uint32_t));
    const bool has_swap = generation == G::gfx942;
    CHECK(queue.consume(1) == (has_swap ? QueueState::drained : QueueState::failed));
    CHECK((m.word(0) == before) == has_swap);
  }
}
