// SPDX-License-Identifier: MIT
#include "lib/amd/probe.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <span>

#include "device/packet_build.hpp"
#include "lib/amd/exchange.hpp"
#include "lib/amd/patience.hpp"

namespace ferry::amd {
namespace {

using device::Generation;

// Around the sizes at which engines were seen to fail with wrong firmware.
constexpr std::uint64_t kSizes[] = {8, 4096, 16 * 1024 + 8, 64 * 1024};
constexpr std::uint64_t kSlot = 96 * 1024;
static_assert(std::accumulate(std::begin(kSizes), std::end(kSizes), std::uint64_t{0}) <= kSlot);
constexpr std::uint64_t kWord = 64;
constexpr double kSeconds = 4;
constexpr std::size_t kStamps = kSlot / sizeof(std::uint64_t);

std::uint64_t stamp(int rank, std::uint64_t index) {
  return (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u ^ (index + 1) * 0xff51afd7u;
}

std::vector<std::uint64_t> stamps_of(int rank) {
  std::vector<std::uint64_t> stamps(kStamps);
  for (std::size_t i = 0; i < kStamps; ++i) stamps[i] = stamp(rank, i);
  return stamps;
}

std::uint64_t total_bytes() {
  return std::accumulate(std::begin(kSizes), std::end(kSizes), std::uint64_t{0});
}

// The packets of a trial. Nothing is checked here: all values are of this file.
template <Generation G>
class Trial {
 public:
  explicit Trial(std::vector<std::uint32_t>& dwords) : dwords_(dwords) {}

  void copies(std::uint64_t to, std::uint64_t from, std::span<const std::uint64_t> sizes) {
    std::uint64_t at = 0;
    for (const std::uint64_t bytes : sizes) {
      device::CopyPacket copy;
      add(Packets::copy(copy, to + at, from + at, bytes), copy);
      at += bytes;
    }
  }
  void raise(std::uint64_t word) {
    device::AtomicPacket atomic;
    add(Packets::atomic(atomic, device::AtomicOperation::add, 8, true, word, 1), atomic);
  }
  void hold(std::uint64_t word) {
    if constexpr (device::detail::kHasPacket<G, device::PacketKind::poll64>) {
      device::Poll64Packet poll;
      add(Packets::poll64(poll, word, 1), poll);
    } else {
      device::PollPacket poll;
      add(Packets::poll(poll, word, 1), poll);
    }
  }
  void tell(const std::uint64_t* word) {
    device::FencePacket fence;
    add(Packets::fence(fence, reinterpret_cast<std::uint64_t>(word), 1), fence);
  }

 private:
  using Packets = device::Build<G>;
  template <class Words>
  void add(device::PacketStatus status, const Words& packet) {
    if (status != device::PacketStatus::ok) return;
    dwords_.insert(dwords_.end(), std::begin(packet.dw), std::end(packet.dw));
  }
  std::vector<std::uint32_t>& dwords_;
};

template <Generation G>
std::vector<std::uint32_t> packets_of(const ProbeRoute& route) {
  std::vector<std::uint32_t> dwords;
  Trial<G> trial(dwords);
  trial.copies(route.to, route.from, route.sizes);
  trial.raise(route.peer_word);
  trial.raise(route.own_word);
  trial.hold(route.own_word);
  trial.tell(route.mark);
  return dwords;
}

bool told(const std::uint64_t* mark) {
  return device::load_acquire(mark) != 0;
}

// Until all have come to their end, or the time is over.
void watch(const std::vector<ProbeQueue>& queues, const ProbeGround& ground) {
  const auto look = [&] {
    bool all = true;
    for (std::size_t i = 0; i < queues.size(); ++i) {
      const bool stands_still = !queues[i].queue->progress().ok();
      all &= stands_still || told(ground.marks[i]);
    }
    return all ? core::Poll::ready : core::Poll::pending;
  };
  (void)wait_patiently([] { return std::string("the trial of SDMA queues"); }, kSeconds, look);
}

// What came from `sender` into the arena of this rank: 0 when it is right.
std::uint8_t look_at(const Devices& devices, const std::byte* slot, int sender) {
  std::vector<std::uint64_t> seen(kStamps);
  try {
    devices.runtime.copy(seen.data(), slot, total_bytes());
  } catch (const core::Failure&) {
    return 1;
  }
  const auto expected = stamps_of(sender);
  const auto end = seen.begin() + static_cast<std::ptrdiff_t>(total_bytes() / 8);
  return std::equal(seen.begin(), end, expected.begin()) ? 0 : 1;
}

} // namespace

std::vector<std::uint32_t> probe_packets(Generation generation, const ProbeRoute& route) {
  switch (generation) {
    case Generation::gfx90a:
      return packets_of<Generation::gfx90a>(route);
    case Generation::gfx942:
      return packets_of<Generation::gfx942>(route);
    case Generation::gfx950:
      return packets_of<Generation::gfx950>(route);
    case Generation::gfx1250:
      return packets_of<Generation::gfx1250>(route);
    case Generation::software:
      break;
  }
  return packets_of<Generation::software>(route);
}

std::size_t probe_arena_bytes(int ranks) {
  return (static_cast<std::size_t>(ranks) + 1) * kSlot;
}

void stamp_arena(const Devices& devices, std::byte* arena, int rank) {
  devices.runtime.copy(arena, stamps_of(rank).data(), kSlot);
}

std::size_t probe_word_bytes(int ranks) {
  return 2 * static_cast<std::size_t>(ranks) * kWord;
}

// Slot 0 of an arena holds the stamps, slot 1 + r what comes from rank r. Of the words, the first
// half is raised by others, the second by the queues of this rank, by peer.
std::vector<std::string> probe_queues(
    const Devices& devices, core::DeviceTeam& team, const std::vector<ProbeQueue>& queues,
    const ProbeGround& ground, Generation generation) {
  const auto ranks = static_cast<std::size_t>(team.ranks());
  const auto me = static_cast<std::size_t>(team.rank());
  std::vector<std::uint8_t> sent(ranks); // 1: to this rank, and told; 2: not told
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const auto peer = static_cast<std::size_t>(queues[i].peer);
    const std::uint64_t word = (ranks + peer) * kWord;
    const auto dwords = probe_packets(
        generation,
        {ground.arenas[peer] + (1 + me) * kSlot, ground.arenas[me], ground.words[peer] + me * kWord,
         ground.words[me] + word, ground.marks[i], kSizes});
    const device::SingleProducer producer(queues[i].queue->ring());
    const device::PacketSpan span{dwords.data(), dwords.size()};
    sent[peer] = device::submit(producer, &span, 1) ? 1 : 2;
  }
  watch(queues, ground);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!told(ground.marks[i])) sent[static_cast<std::size_t>(queues[i].peer)] = 2;
  }
  std::vector<std::uint8_t> all(ranks * ranks);
  team.allgather(sent.data(), ranks, all.data());
  std::vector<std::uint8_t> wrong(ranks); // by sender
  for (std::size_t sender = 0; sender < ranks; ++sender) {
    if (all[sender * ranks + me] != 1) continue;
    const std::byte* const slot = ground.arena + (1 + sender) * kSlot;
    wrong[sender] = look_at(devices, slot, static_cast<int>(sender));
  }
  team.allgather(wrong.data(), ranks, all.data());
  std::vector<std::string> verdicts;
  for (const ProbeQueue& probed : queues) {
    const auto peer = static_cast<std::size_t>(probed.peer);
    const char* const fault = sent[peer] == 2               ? "does not come to an end"
                              : all[peer * ranks + me] != 0 ? "brings wrong bytes"
                                                            : "";
    verdicts.push_back(
        *fault == 0 ? "" : fmt::format("{} to rank {} {}", probed.queue->name(), peer, fault));
  }
  return verdicts;
}

} // namespace ferry::amd
