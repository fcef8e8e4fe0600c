// SPDX-License-Identifier: MIT
// Packets a second through a ring, every dword of them checked, and what a queue needs to decode
// and dispatch one. Variants take turns, so that a disturbance hits all; medians are reported, with
// what nine in ten exceed and what one in ten exceeds.
//
//   ring_bench [--packets N[K|M|G]] [--rounds N] [--only TEXT]

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/copy.hpp"
#include "device/put.hpp"
#include "device/ring.hpp"
#include "lib/engine/queue.hpp"
#include "lib/exec/recorder.hpp"

using namespace ferry::device;
using ferry::core::HostRing;
using ferry::core::Producers;
using ferry::core::Queue;
using ferry::core::QueueState;
using ferry::core::Window;
using ferry::core::WindowSet;

namespace {

constexpr std::size_t kRingBytes = std::size_t{1} << 16;
constexpr std::uint64_t kDwords = 16; // 64 bytes
constexpr std::uint64_t kFree = 128; // packets that are read before their space is free again
constexpr int kSpins = 64; // looks before the core is offered to another thread

constexpr int kTurn = 16; // packets of a queue in one go

using Sample = std::array<std::uint32_t, kDwords>;

// WRITE_LINEAR of 12 dwords; all of them tell who made it, and when.
Sample make_sample(std::uint32_t producer, std::uint64_t number) {
  Sample packet{2, 0x1000, 0, kDwords - 5, producer};
  packet[5] = static_cast<std::uint32_t>(number);
  packet[6] = static_cast<std::uint32_t>(number >> 32);
  const std::uint32_t mixed = static_cast<std::uint32_t>(number) * 0x9e37'79b9u ^ producer;
  for (std::uint32_t i = 7; i < kDwords; ++i) packet[i] = mixed + i * 0x85eb'ca6bu;
  return packet;
}

// One producer and its consumer stay on two cores, as far as there are two: taking turns on one of
// them is another experiment. It only helps, so that a refusal does not matter.
void stay_on(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % std::max(1u, std::thread::hardware_concurrency()), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void roam() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, &set);
}

class Pause {
 public:
  void operator()() {
    if (++looks_ % kSpins != 0) return cpu_relax();
    std::this_thread::yield();
  }

 private:
  std::uint64_t looks_ = 0;
};

[[noreturn]] void give_up(const char* what, std::uint64_t at) {
  std::fprintf(stderr, "ring_bench: %s at byte %#llx\n", what, static_cast<unsigned long long>(at));
  std::_Exit(1);
}

// Reads what lies below the doorbell, checks order and content, then frees it.
class Checker {
 public:
  Checker(const RingHandle& ring, std::size_t producers) : ring_(ring), next_(producers) {}

  // Packets that were there.
  std::uint64_t take() {
    const std::uint64_t doorbell = load_acquire(ring_.doorbell);
    std::uint64_t packets = 0;
    while (position_ != doorbell) {
      const std::uint32_t* const dw = ring_.base + (position_ & (ring_.bytes - 1)) / 4;
      const PacketInfo* const info = find_packet(dw[0]);
      if (info == nullptr) give_up("no packet", position_);
      if (info->kind != PacketKind::nop) check(dw);
      packets += info->kind != PacketKind::nop;
      position_ += packet_dwords(*info, dw) * 4;
      if (packets % kFree == 0) store_release(ring_.rptr, position_);
    }
    store_release(ring_.rptr, position_);
    return packets;
  }

 private:
  void check(const std::uint32_t* dw) {
    const std::uint32_t producer = dw[4];
    if (producer >= next_.size()) give_up("a packet of nobody", position_);
    const Sample expected = make_sample(producer, next_[producer]++);
    if (std::memcmp(dw, expected.data(), sizeof expected) != 0) give_up("wrong content", position_);
  }

  RingHandle ring_;
  std::vector<std::uint64_t> next_; // by producer
  std::uint64_t position_ = 0;
};

template <class Producer>
void produce(const Producer& queue, std::uint32_t me, std::uint64_t packets, std::uint64_t batch) {
  Pause pause;
  for (std::uint64_t number = 0; number < packets;) {
    const std::uint64_t now = std::min(batch, packets - number);
    const Reservation r = queue.reserve(now * sizeof(Sample));
    if (!r) {
      pause();
      continue;
    }
    for (std::uint64_t i = 0; i < now; ++i, ++number) {
      place(queue.ring(), r.offset + i * sizeof(Sample), make_sample(me, number).data(), kDwords);
    }
    queue.publish(r);
  }
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Million packets a second.
template <class Producer>
double run_ring(std::uint32_t producers, std::uint64_t packets, std::uint64_t batch) {
  const bool one = std::is_same_v<Producer, SingleProducer>;
  HostRing ring(kRingBytes, one ? Producers::one : Producers::several);
  const std::uint64_t each = packets / producers;
  Checker checker(ring.handle(), producers);
  std::vector<std::jthread> threads;
  const Clock::time_point start = Clock::now();
  for (std::uint32_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      if (one) stay_on(1);
      produce(Producer(ring.handle()), p, each, batch);
    });
  }
  if (one) stay_on(0);
  Pause pause;
  for (std::uint64_t seen = 0; seen < each * producers;) {
    const std::uint64_t now = checker.take();
    seen += now;
    if (now == 0) pause();
  }
  const double seconds = seconds_since(start);
  if (one) roam();
  return static_cast<double>(each * producers) / seconds / 1e6;
}

template <std::uint32_t kProducers, std::uint64_t kBatch>
double several(std::uint64_t packets) {
  return run_ring<MultiProducer>(kProducers, packets, kBatch);
}

template <std::uint64_t kBatch>
double single(std::uint64_t packets) {
  return run_ring<SingleProducer>(1, packets, kBatch);
}

// Nanoseconds a packet of one thread that copies 64 bytes a packet, without the copy itself.
struct Decoding {
  static constexpr std::uint64_t kBlock = 64;
  static constexpr std::uint64_t kBlocks = 256;

  Decoding() : from(kBlock * kBlocks, 1), to(kBlock * kBlocks), queue(kRingBytes) {
    windows.add(window(from.data(), false));
    windows.add(window(to.data(), true));
    queue.set_windows(&windows);
  }
  Window window(const void* memory, bool writable) const {
    Window w;
    w.base = reinterpret_cast<std::uint64_t>(memory);
    w.bytes = kBlock * kBlocks;
    w.writable = writable;
    return w;
  }
  void post(const SingleProducer& producer) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      const auto r = put(producer, to.data() + i * kBlock, from.data() + i * kBlock, kBlock);
      if (r.status != PutStatus::done) give_up("no room", 0);
    }
  }
  void copy() {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      copy_bytes(to.data() + i * kBlock, from.data() + i * kBlock, bytes);
    }
  }

  std::vector<unsigned char> from, to;
  WindowSet windows;
  Queue queue;
  volatile std::uint64_t bytes = kBlock; // the engine does not know the size beforehand either
};

// Million packets a second, with the packets executed by a queue on another thread.
double execute(std::uint64_t packets) {
  Decoding d;
  const std::uint64_t rounds = packets / Decoding::kBlocks + 1;
  std::fill(d.from.begin(), d.from.end(), static_cast<unsigned char>(packets % 251 + 1));
  const Clock::time_point start = Clock::now();
  std::jthread producer([&] {
    stay_on(1);
    const SingleProducer queue(d.queue.ring());
    Pause pause;
    for (std::uint64_t i = 0; i < rounds * Decoding::kBlocks;) {
      const std::uint64_t at = i % Decoding::kBlocks * Decoding::kBlock;
      const auto r = put(queue, d.to.data() + at, d.from.data() + at, Decoding::kBlock);
      if (r.status == PutStatus::done) ++i;
      if (r.status == PutStatus::would_block) pause();
    }
  });
  stay_on(0);
  Pause pause;
  const std::uint64_t end = rounds * Decoding::kBlocks * sizeof(CopyPacket);
  for (std::uint64_t seen = 0; seen < end;) {
    if (d.queue.consume(kTurn) == QueueState::failed) give_up("failed", seen);
    if (d.queue.consumed() == seen) pause();
    seen = d.queue.consumed();
  }
  const double seconds = seconds_since(start);
  roam();
  if (d.to != d.from) give_up("not copied", 0);
  return static_cast<double>(rounds * Decoding::kBlocks) / seconds / 1e6;
}

double decode(std::uint64_t packets) {
  Decoding d;
  const SingleProducer producer(d.queue.ring());
  double busy = 0;
  const std::uint64_t rounds = packets / Decoding::kBlocks + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    d.from.assign(d.from.size(), static_cast<unsigned char>(round));
    d.post(producer);
    const Clock::time_point start = Clock::now();
    if (d.queue.consume(1 << 20) != QueueState::drained) give_up("not drained", 0);
    const Clock::time_point middle = Clock::now();
    d.copy();
    busy += std::chrono::duration<double>(middle - start).count() - seconds_since(middle);
    if (d.to != d.from) give_up("not copied", round);
  }
  return busy * 1e9 / static_cast<double>(rounds * Decoding::kBlocks);
}

// What the recorder of last operations adds to a call.
double record(std::uint64_t calls) {
  const auto recorder = std::make_unique<ferry::core::Recorder>();
  ferry::core::CollectiveDesc desc;
  desc.recv_layout = ferry::core::contiguous_layout(8, 1);
  const Clock::time_point start = Clock::now();
  for (std::uint64_t call = 1; call <= calls; ++call) recorder->note(desc, call);
  const double seconds = seconds_since(start);
  if (recorder->newest() != "call " + std::to_string(calls) + " alltoall of 8 bytes") {
    give_up("not recorded", calls);
  }
  return seconds * 1e9 / static_cast<double>(calls);
}

struct Variant {
  const char* name;
  const char* unit;
  std::uint64_t share; // of the packets asked for
  double (*run)(std::uint64_t packets);
};

constexpr Variant kVariants[] = {
    {"one producer, a doorbell each", "M packets/s", 1, single<1>},
    {"one producer, a doorbell for 16", "M packets/s", 1, single<16>},
    {"shared ring, 1 producer", "M packets/s", 4, several<1, 1>},
    {"shared ring, 2 producers", "M packets/s", 8, several<2, 1>},
    {"shared ring, 4 producers", "M packets/s", 8, several<4, 1>},
    {"shared ring, 4 producers, a doorbell for 16", "M packets/s", 4, several<4, 16>},
    {"one producer, puts of 64 bytes executed", "M packets/s", 2, execute},
    {"decode and dispatch", "ns/packet", 4, decode},
    {"operation noted in the recorder", "ns", 1, record},
};

std::uint64_t parse(const char* text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  const std::string unit = end;
  if (unit == "K") return number * 1000;
  if (unit == "M") return number * 1000 * 1000;
  if (unit == "G") return number * 1000 * 1000 * 1000;
  return unit.empty() ? number : 0;
}

} // namespace

int main(int argc, char** argv) {
  std::uint64_t packets = 4'000'000;
  std::uint64_t rounds = 5;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--packets") packets = parse(argv[i + 1]);
    if (option == "--rounds") rounds = parse(argv[i + 1]);
    if (option == "--only") only = argv[i + 1];
  }
  if (argc % 2 == 0 || packets < 1000 || rounds == 0) {
    std::fputs("usage: ring_bench [--packets N[K|M|G]] [--rounds N] [--only TEXT]\n", stderr);
    return 2;
  }
  std::array<std::vector<double>, std::size(kVariants)> figures;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < std::size(kVariants); ++i) {
      const Variant& v = kVariants[i];
      if (std::strstr(v.name, only.c_str()) != nullptr) {
        figures[i].push_back(v.run(packets / v.share));
      }
    }
  }
  for (std::size_t i = 0; i < std::size(kVariants); ++i) {
    std::vector<double>& f = figures[i];
    if (f.empty()) continue;
    std::sort(f.begin(), f.end());
    std::printf(
        "%-45s %8.2f %s  (%.2f .. %.2f)\n", kVariants[i].name, f[f.size() / 2], kVariants[i].unit,
        f[f.size() / 10], f[f.size() * 9 / 10]);
  }
  return 0;
}
