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
      : schedule_(schedule), book_(book), max_packet_(max_packet) {
    std::size_t copies = 0;
    for (const StepQueue& queue : schedule.queues) copies += queue.steps.size();
    if (!book.send.empty() || !book.recv.empty()) layouts_.reserve(2 * copies);
  }

  RingImage ring(const StepQueue& queue) {
    image_ = {};
    image_.peer = queue.peer;
    for (const Step& step : queue.steps) encode(step);
    return std::move(image_);
  }

  HostQueue host(const StepQueue& queue) {
    HostQueue out{queue.peer, {}};
    for (const Step& step : queue.steps) {
      if (!on_slots(step)) out.ops.push_back(host_op(step));
    }
    return out;
  }

  // Packets copy bytes that lie side by side; blocks with gaps are the calling thread's.
  bool needs_host(const StepQueue& queue) const {
    return std::any_of(queue.steps.begin(), queue.steps.end(), [&](const Step& step) {
      return step.kind == StepKind::copy &&
             (gaps(step.to) != nullptr || gaps(step.from) != nullptr);
    });
  }

  std::vector<Layout> take_layouts() { return std::move(layouts_); }

 private:
  static bool on_slots(const Step& step) {
    if (step.kind != StepKind::copy) return step.signal == SignalKind::slot;
    return step.to.buffer == Buffer::slot || step.from.buffer == Buffer::slot;
  }

  const OwnBlock* gaps(const Place& place) const {
    const OwnBlock* own = book_.own(place);
    return own != nullptr && !own->layout.contiguous() ? own : nullptr;
  }

  void host_side(
      const Place& place, std::uint64_t& address, const Layout*& layout, std::uint64_t& skip) {
    const OwnBlock* block = gaps(place);
    if (block == nullptr) {
      address = book_.of(place);
      return;
    }
    layouts_.push_back(block->layout); // never grows beyond what was reserved: pointers stay
    address = block->address;
    layout = &layouts_.back();
    skip = place.offset;
  }

  HostOp host_op(const Step& step) {
    HostOp op;
    op.kind = step.kind;
    op.peer = step.peer;
    op.signal = step.signal;
    op.bytes = step.bytes;
    op.ordinal = step.ordinal;
    if (step.kind == StepKind::copy) {
      host_side(step.to, op.to, op.to_layout, op.to_skip);
      host_side(step.from, op.from, op.from_layout, op.from_skip);
    } else if (step.kind == StepKind::signal) {
      op.to = book_.signal(step.signal, step.peer, schedule_.rank);
    } else {
      op.word = signal_index(step.signal, schedule_.ranks, step.peer);
    }
    return op;
  }

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
  std::vector<Layout> layouts_;
};

} // namespace

const OwnBlock* AddressBook::own(const Place& place) const {
  if (place.rank != rank) return nullptr;
  if (place.buffer == Buffer::send && !send.empty()) {
    return &send[static_cast<std::size_t>(place.block)];
  }
  if (place.buffer == Buffer::recv && !recv.empty()) {
    return &recv[static_cast<std::size_t>(place.block)];
  }
  return nullptr;
}

std::uint64_t AddressBook::of(const Place& place) const {
  if (const OwnBlock* block = own(place)) {
    return block->address + static_cast<std::uint64_t>(block->layout.offset) + place.offset;
  }
  const RankAddresses& at = ranks[static_cast<std::size_t>(place.rank)];
  const auto index = static_cast<std::uint64_t>(place.block);
  switch (place.buffer) {
    case Buffer::send:
      return at.send + index * at.send_stride + place.offset;
    case Buffer::recv:
      return at.recv + index * at.recv_stride + place.offset;
    case Buffer::stage:
      return at.stage + place.offset;
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
  program.host.push_back(encoder.host(schedule.queues.front()));
  for (std::size_t q = 1; q < schedule.queues.size(); ++q) {
    const StepQueue& queue = schedule.queues[q];
    if (encoder.needs_host(queue)) {
      program.host.push_back(encoder.host(queue));
    } else {
      program.rings.push_back(encoder.ring(queue));
    }
  }
  program.layouts = encoder.take_layouts();
  return program;
}

} // namespace ferry::core
