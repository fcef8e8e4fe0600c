// SPDX-License-Identifier: MIT
// Packets of a ring as operations of a stream that records them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "device/packet.hpp"
#include "device/put.hpp"
#include "lib/engine/queue.hpp"
#include "lib/nvidia/translator.hpp"

namespace ferry::test {

namespace {

using core::HostRing;
using core::Producers;
using device::SingleProducer;
using nvidia::Translator;

class RecordingStream final : public nvidia::CommandStream {
 public:
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override {
    note(fmt::format("copy {:#x} {:#x} {}", to, from, bytes));
  }
  void fill(std::uint64_t to, std::uint32_t pattern, std::uint64_t bytes) override {
    note(fmt::format("fill {:#x} {:#x} {}", to, pattern, bytes));
  }
  void write32(std::uint64_t address, std::uint32_t value) override {
    note(fmt::format("write32 {:#x} {}", address, value));
  }
  void write64(std::uint64_t address, std::uint64_t value) override {
    note(fmt::format("write64 {:#x} {}", address, value));
  }
  void wait32(std::uint64_t address, std::uint32_t value) override {
    note(fmt::format("wait32 {:#x} {}", address, value));
  }
  void wait64(std::uint64_t address, std::uint64_t value) override {
    note(fmt::format("wait64 {:#x} {}", address, value));
  }
  void submit() override { note("submit"); }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  void note(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> lines_;
};

constexpr std::uint64_t kSource = 0x10000;
constexpr std::uint64_t kTarget = 0x20000;
constexpr std::uint64_t kBytes = 0x8000;

core::WindowSet windows() {
  core::WindowSet set;
  set.add({kSource, kBytes, false, 0, 0, 0, "source"});
  set.add({kTarget, kBytes, true, 1, 0, 0, "target"});
  return set;
}

// Addresses are never touched: a recording stream carries nothing out.
template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

struct Bench {
  explicit Bench(std::size_t bytes = 4096) : ring(bytes, Producers::one) {}

  std::string rptr(std::uint64_t value) {
    const auto address = reinterpret_cast<std::uint64_t>(ring.handle().rptr);
    return fmt::format("write64 {:#x} {}", address, value);
  }
  // The ring's own end of what the stream did.
  void consume() { *ring.handle().rptr = translator.position(); }

  template <class Packet>
  void post(const Packet& packet) {
    const SingleProducer queue(ring.handle());
    const device::Reservation r = queue.reserve(sizeof packet);
    REQUIRE(static_cast<bool>(r));
    device::place(ring.handle(), r.offset, packet.dw, sizeof packet / 4);
    queue.publish(r);
  }

  HostRing ring;
  core::WindowSet set = windows();
  Translator translator{ring.handle(), set};
  RecordingStream out;
};

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("translator: a put becomes copies and a store of the signal, then rptr moves") {
  Bench b;
  b.ring.handle().max_copy_bytes = 0x1000;
  const SingleProducer queue(b.ring.handle());
  const auto put = device::put_signal(
      queue, at<void>(kTarget), at<void>(kSource), 0x1800, at<std::uint64_t>(kTarget + 0x4000), 1);
  REQUIRE(put.status == device::PutStatus::done);
  CHECK(b.translator.advance(b.out, 64) == Translator::State::moved);
  CHECK(
      b.out.take() == Lines{
                          "copy 0x20000 0x10000 4096", "copy 0x21000 0x11000 2048",
                          "write64 0x24000 1", b.rptr(put.ticket), "submit"});
  CHECK(b.translator.advance(b.out, 64) == Translator::State::idle);
  CHECK(b.out.take().empty());
}

TEST_CASE("translator: signals add up, each word for itself, over many laps of a small ring") {
  Bench b(256);
  std::array<std::uint64_t, 2> sums{};
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t word = kTarget + 8 * (i % 2);
    const SingleProducer queue(b.ring.handle());
    REQUIRE(device::signal(queue, at<std::uint64_t>(word), i).status == device::PutStatus::done);
    sums[i % 2] += i;
    REQUIRE(b.translator.advance(b.out, 64) == Translator::State::moved);
    const Lines lines = b.out.take();
    REQUIRE(lines.front() == fmt::format("write64 {:#x} {}", word, sums[i % 2]));
    b.consume();
  }
}

TEST_CASE("translator: polls, fills, fences and writes") {
  Bench b;
  device::Poll64Packet poll64{};
  REQUIRE(device::build_poll64(poll64, kSource, 7) == device::PacketStatus::ok);
  device::PollPacket poll{};
  REQUIRE(device::build_poll(poll, kSource + 8, 9) == device::PacketStatus::ok);
  device::FillPacket fill{};
  REQUIRE(device::build_fill(fill, kTarget, 0xabcd, 64) == device::PacketStatus::ok);
  device::FencePacket fence{};
  REQUIRE(device::build_fence(fence, kTarget + 64, 5) == device::PacketStatus::ok);
  struct {
    std::uint32_t dw[7];
  } write{};
  device::WriteHeader header{};
  REQUIRE(device::build_write(header, kTarget + 4, 3) == device::PacketStatus::ok);
  std::copy_n(header.dw, 4, write.dw);
  for (std::uint32_t i = 0; i < 3; ++i) write.dw[4 + i] = i + 1;
  b.post(poll64);
  b.post(poll);
  b.post(fill);
  b.post(fence);
  b.post(write);
  CHECK(b.translator.advance(b.out, 64) == Translator::State::moved);
  Lines lines = b.out.take();
  lines.resize(6);
  CHECK(
      lines == Lines{
                   "wait64 0x10000 7", "wait32 0x10008 9", "fill 0x20000 0xabcd 64",
                   "write32 0x20040 5", "write32 0x20004 1",
                   fmt::format("write64 0x20008 {}", std::uint64_t{3} << 32 | 2)});
}

TEST_CASE("translator: takes no more packets than it may at once") {
  Bench b;
  device::FencePacket fence{};
  REQUIRE(device::build_fence(fence, kTarget, 1) == device::PacketStatus::ok);
  for (int i = 0; i < 5; ++i) b.post(fence);
  for (int i = 0; i < 2; ++i) {
    CHECK(b.translator.advance(b.out, 2) == Translator::State::moved);
    CHECK(b.out.take().size() == 4);
  }
  CHECK(b.translator.advance(b.out, 2) == Translator::State::moved);
  CHECK(b.out.take().size() == 3);
}

TEST_CASE("translator: a bad packet stops the ring for good, and nothing of it is carried out") {
  const auto refused = [](const auto& packet, const std::string& cause) {
    Bench b;
    b.post(packet);
    CHECK(b.translator.advance(b.out, 64) == Translator::State::failed);
    CHECK(b.out.take().empty());
    INFO(b.translator.error().cause);
    CHECK(b.translator.error().cause.find(cause) != std::string::npos);
    CHECK(b.translator.advance(b.out, 64) == Translator::State::failed);
  };
  device::CopyPacket copy{};
  REQUIRE(device::build_copy(copy, kTarget + kBytes - 8, kSource, 16) == device::PacketStatus::ok);
  refused(copy, "COPY_LINEAR to 0x27ff8 (16 bytes) lies in no writable window");
  REQUIRE(device::build_copy(copy, kTarget, 0x90000, 16) == device::PacketStatus::ok);
  refused(copy, "COPY_LINEAR from");
  device::AtomicPacket atomic{};
  REQUIRE(device::build_atomic_add(atomic, kSource, 1) == device::PacketStatus::ok);
  refused(atomic, "ATOMIC 0x10000 (8 bytes) lies in no writable window");
  atomic.dw[0] = (atomic.dw[0] & 0x01ffffffu) | 7u << 25;
  refused(atomic, "only 64-bit add is carried");
  device::PollPacket poll{};
  REQUIRE(device::build_poll(poll, kSource, 9) == device::PacketStatus::ok);
  poll.dw[0] ^= 1u << 28;
  refused(poll, "POLL_REGMEM that is not 'at least'");
  struct {
    std::uint32_t dw[2] = {0xffffu, 0};
  } unknown;
  refused(unknown, "unknown packet 0x0000ffff");
}

TEST_CASE("translator: a doorbell that is no place in the ring") {
  Bench b;
  *b.ring.handle().doorbell = 2 * b.ring.handle().bytes;
  CHECK(b.translator.advance(b.out, 64) == Translator::State::failed);
  CHECK(b.translator.error().cause.find("doorbell") != std::string::npos);
}

} // namespace ferry::test
