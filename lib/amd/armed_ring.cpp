// SPDX-License-Identifier: MIT
#include "lib/amd/armed_ring.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/packet.hpp"
#include "device/packet_print.hpp"
#include "device/packet_table.hpp"
#include "device/ring.hpp"

namespace ferry::amd {
namespace {

constexpr std::uint64_t kSmallestLap = 64;

std::uint64_t lap_of(const RingProgram& program) {
  return std::max(kSmallestLap, std::bit_ceil(program.dwords.size() * sizeof(std::uint32_t)));
}

} // namespace

// A queue from the pool has been used before, and stands anywhere.
ArmedRing::ArmedRing(
    QueueLease lease, RingProgram program, device::Generation generation, std::uint64_t first)
    : lease_(std::move(lease)),
      program_(std::move(program)),
      generation_(generation),
      first_(first),
      lap_(lap_of(program_)) {
  const std::uint64_t cursor = lease_->written();
  next_ = (cursor + lap_ - 1) / lap_ * lap_;
  device::place_nops(lease_->ring(), cursor, next_);
}

std::size_t ArmedRing::ring_bytes(const RingProgram& program) {
  constexpr std::size_t kLaps = 4;
  return kLaps * lap_of(program);
}

// A ring is never filled to its last byte.
std::uint64_t ArmedRing::room() const {
  return (lease_->ring().bytes - 1 - (next_ - lease_->consumed())) / lap_;
}

std::string ArmedRing::next_packet() const {
  const device::RingHandle& ring = lease_->ring();
  const std::uint64_t at = lease_->consumed();
  if (at >= next_) return {};
  const std::uint64_t offset = at & (ring.bytes - 1);
  const std::uint64_t left = std::min(ring.bytes - offset, next_ - at) / sizeof(std::uint32_t);
  return device::print_packet({ring.base + offset / 4, left}, generation_).text;
}

bool ArmedRing::copies_at(std::uint64_t address) const {
  constexpr std::uint64_t kPage = 4096;
  const device::RingHandle& ring = lease_->ring();
  const auto touches = [&](std::uint64_t begin, std::uint64_t bytes) {
    const std::uint64_t page = address / kPage;
    return begin / kPage <= page && page <= (begin + bytes - 1) / kPage;
  };
  for (std::uint64_t at = lease_->consumed(); at < next_;) {
    const std::uint32_t* const dw = ring.base + (at & (ring.bytes - 1)) / 4;
    const device::Packet* const packet = device::find_packet(generation_, dw[0]);
    if (packet == nullptr) return false;
    if (packet->kind == device::PacketKind::copy) {
      const auto value = [&](device::FieldId id) {
        return device::field_value(device::field_of(*packet, generation_, id), dw);
      };
      const std::uint64_t bytes = value(device::FieldId::bytes);
      if (touches(value(device::FieldId::destination), bytes)) return true;
      if (touches(value(device::FieldId::source), bytes)) return true;
    }
    at += 4 * device::packet_dwords(*packet, generation_, dw);
  }
  return false;
}

void ArmedRing::arm(std::uint64_t epoch) {
  const device::RingHandle& ring = lease_->ring();
  set_epoch(program_, generation_, first_, epoch, program_.dwords.data());
  const std::uint64_t end = next_ + 4 * program_.dwords.size();
  device::place(ring, next_, program_.dwords.data(), program_.dwords.size());
  device::place_nops(ring, end, next_ + lap_);
  next_ += lap_;
  device::store_relaxed(ring.reserved, next_);
  device::detail::ring_doorbell(ring, next_);
}

} // namespace ferry::amd
