// SPDX-License-Identifier: MIT
#include "lib/schedule/lower.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "device/packet.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

void require_ok(device::PacketStatus status, const Step& step) {
  if (status == device::PacketStatus::ok) return;
  throw Failure(
      ErrorKind::other, fmt::format("no packet can hold the step {}", print(step)),
      "this is a fault of the planner: please report it");
}

class Encoder {
 public:
  Encoder(const Schedule& schedule, const AddressBook& book, std::uint64_t max_packet)
      : schedule_(schedule), book_(book), max_packet_(max_packet) {}

  RingImage ring(const StepQueue& queue) {
    image_ = {};
    image_.peer = queue.peer;
    for (const Step& step : queue.steps) encode(step);
    return std::move(image_);
  }

  HostOp host(const Step& step) const {
    HostOp op;
    op.kind = step.kind;
    op.peer = step.peer;
    op.signal = step.signal;
    op.bytes = step.bytes;
    op.ordinal = step.ordinal;
    if (step.kind == StepKind::copy) {
      op.to = book_.of(step.to);
      op.from = book_.of(step.from);
    } else if (step.kind == StepKind::signal) {
      op.to = book_.signal(step.signal, step.peer, schedule_.rank);
    } else {
      op.word = signal_index(step.signal, schedule_.ranks, step.peer);
    }
    return op;
  }

 private:
  template <class Packet>
  void append(const Packet& packet) {
    image_.dwords.insert(image_.dwords.end(), std::begin(packet.dw), std::end(packet.dw));
  }

  void encode(const Step& step) {
    switch (step.kind) {
      case StepKind::copy:
        encode_copy(step);
        return;
      case StepKind::signal: {
        device::AtomicPacket packet;
        const auto word = book_.signal(step.signal, step.peer, schedule_.rank);
        require_ok(device::build_atomic_add(packet, word, 1), step);
        append(packet);
        return;
      }
      case StepKind::await:
        encode_await(step);
        return;
    }
  }

  void encode_copy(const Step& step) {
    const std::uint64_t to = book_.of(step.to);
    const std::uint64_t from = book_.of(step.from);
    for (std::uint64_t done = 0; done < step.bytes;) {
      const std::uint64_t bytes = std::min(max_packet_, step.bytes - done);
      device::CopyPacket packet;
      require_ok(device::build_copy(packet, to + done, from + done, bytes), step);
      append(packet);
      done += bytes;
    }
  }

  void encode_await(const Step& step) {
    constexpr std::uint32_t kReferenceDword = 3; // of POLL_MEM_64B
    const auto position = static_cast<std::uint32_t>(image_.dwords.size());
    image_.polls.push_back(
        {position + kReferenceDword, signal_index(step.signal, schedule_.ranks, step.peer),
         step.ordinal});
    device::Poll64Packet packet;
    const auto word = book_.signal(step.signal, schedule_.rank, step.peer);
    require_ok(device::build_poll64(packet, word, step.ordinal), step);
    append(packet);
  }

  const Schedule& schedule_;
  const AddressBook& book_;
  std::uint64_t max_packet_;
  RingImage image_;
};

} // namespace

std::uint64_t AddressBook::of(const Place& place) const {
  const RankAddresses& rank = ranks[static_cast<std::size_t>(place.rank)];
  switch (place.buffer) {
    case Buffer::send:
      return rank.send + place.offset;
    case Buffer::recv:
      return rank.recv + place.offset;
    case Buffer::stage:
      return rank.stage + place.offset;
    case Buffer::slot:
      break;
  }
  throw Failure(
      ErrorKind::other, "slots are not moved by packets", "this is a fault: please report it");
}

std::uint64_t AddressBook::signal(SignalKind kind, int owner, int writer) const {
  const auto index = signal_index(kind, static_cast<int>(ranks.size()), writer);
  return ranks[static_cast<std::size_t>(owner)].signals + index * kSignalStride;
}

Program lower(const Schedule& schedule, const AddressBook& book, std::uint64_t max_packet_bytes) {
  Encoder encoder(schedule, book, max_packet_bytes);
  Program program;
  program.arrivals = schedule.arrivals();
  for (const Step& step : schedule.queues.front().steps) {
    program.host.push_back(encoder.host(step));
  }
  for (std::size_t q = 1; q < schedule.queues.size(); ++q) {
    program.rings.push_back(encoder.ring(schedule.queues[q]));
  }
  return program;
}

} // namespace ferry::core
