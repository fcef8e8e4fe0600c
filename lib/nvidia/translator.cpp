// SPDX-License-Identifier: MIT
#include "lib/nvidia/translator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/packet.hpp"
#include "device/platform.hpp"

namespace ferry::nvidia {

namespace {

using device::PacketKind;

std::uint64_t join(const std::uint32_t* dw) {
  return dw[0] | std::uint64_t{dw[1]} << 32;
}

std::uint32_t function_of(const std::uint32_t* dw) {
  return dw[0] >> 28 & 7;
}

} // namespace

Translator::State Translator::advance(CommandStream& out, int max_packets) {
  if (!error_.ok()) return State::failed;
  // Pairs with the release of the doorbell: everything below it was written before.
  const std::uint64_t doorbell = device::load_acquire(ring_.doorbell);
  if (doorbell == position_) return State::idle;
  if (doorbell - position_ > ring_.bytes || doorbell % 4 != 0) {
    bad(fmt::format("doorbell {:#x} is no place in the ring", doorbell));
    return State::failed;
  }
  for (int i = 0; i < max_packets && position_ != doorbell; ++i) {
    const std::uint64_t at = position_ & (ring_.bytes - 1);
    const std::uint32_t* const dw = ring_.base + at / 4;
    const std::uint64_t published = (doorbell - position_) / 4;
    const std::uint64_t readable = std::min(published, (ring_.bytes - at) / 4);
    const device::PacketInfo* const info = device::find_packet(dw[0]);
    if (info == nullptr) {
      bad(fmt::format("unknown packet {:#010x}", dw[0]));
      return State::failed;
    }
    const bool nop = info->kind == PacketKind::nop;
    std::uint64_t dwords = info->min_dwords;
    if (dwords <= readable) dwords = device::packet_dwords(*info, dw);
    if (nop) dwords = std::min(dwords, published);
    if (dwords > readable) {
      bad(fmt::format("{} is cut off", info->name));
      return State::failed;
    }
    if (!nop && !translate(dw, dwords, out)) return State::failed;
    position_ += dwords * 4;
  }
  out.write64(reinterpret_cast<std::uint64_t>(ring_.rptr), position_);
  out.submit();
  return State::moved;
}

bool Translator::translate(const std::uint32_t* dw, std::uint64_t dwords, CommandStream& out) {
  switch (device::find_packet(dw[0])->kind) {
    case PacketKind::copy:
      return copy(dw, out);
    case PacketKind::atomic:
      return atomic(dw, out);
    case PacketKind::poll:
      return poll(dw, out);
    case PacketKind::poll64:
      return poll64(dw, out);
    case PacketKind::write:
      return write(dw, dwords - 4, out);
    case PacketKind::fill:
      return fill(dw, out);
    case PacketKind::fence:
      if (!inside("FENCE", join(dw + 1), 4, true)) return false;
      out.write32(join(dw + 1), dw[3]);
      return true;
    case PacketKind::trap: // nobody sleeps on this ring
      return true;
    default:
      return bad(fmt::format("{} is not carried", device::packet_name(dw[0])));
  }
}

bool Translator::copy(const std::uint32_t* dw, CommandStream& out) {
  const std::uint64_t bytes = std::uint64_t{dw[1]} + 1;
  if (bytes > device::kMaxCopyBytes || dw[2] != 0) return bad("COPY_LINEAR with unknown fields");
  const std::uint64_t from = join(dw + 3);
  const std::uint64_t to = join(dw + 5);
  if (!inside("COPY_LINEAR from", from, bytes, false)) return false;
  if (!inside("COPY_LINEAR to", to, bytes, true)) return false;
  out.copy(to, from, bytes);
  return true;
}

bool Translator::write(const std::uint32_t* dw, std::uint64_t dwords, CommandStream& out) {
  const std::uint64_t to = join(dw + 1);
  if (to % 4 != 0 || !inside("WRITE_LINEAR", to, dwords * 4, true)) {
    return error_.ok() ? bad("WRITE_LINEAR to no dword") : false;
  }
  std::uint64_t i = 0;
  for (; i < dwords;) {
    const bool pair = (to + i * 4) % 8 == 0 && i + 1 < dwords;
    if (pair) out.write64(to + i * 4, join(dw + 4 + i));
    if (!pair) out.write32(to + i * 4, dw[4 + i]);
    i += pair ? 2 : 1;
  }
  return true;
}

bool Translator::fill(const std::uint32_t* dw, CommandStream& out) {
  const std::uint64_t to = join(dw + 1);
  const std::uint64_t bytes = std::uint64_t{dw[4]} + 1;
  const bool dwords = (dw[0] & 0xc0000000u) == device::kFillDword && (to | bytes) % 4 == 0;
  if (!dwords || bytes > device::kMaxFillBytes) return bad("CONST_FILL is not one of dwords");
  if (!inside("CONST_FILL", to, bytes, true)) return false;
  out.fill(to, dw[3], bytes);
  return true;
}

bool Translator::atomic(const std::uint32_t* dw, CommandStream& out) {
  const std::uint32_t operation = dw[0] >> 25;
  if (operation != device::kAtomicAdd64 && operation != device::kAtomicAdd64NoReturn) {
    return bad(fmt::format("ATOMIC with operation {}, only 64-bit add is carried", operation));
  }
  const std::uint64_t word = join(dw + 1);
  if (word % 8 != 0) return bad(fmt::format("ATOMIC at {:#x} is not aligned", word));
  if (!inside("ATOMIC", word, 8, true)) return false;
  out.write64(word, sums_[word] += join(dw + 3));
  return true;
}

bool Translator::poll(const std::uint32_t* dw, CommandStream& out) {
  const bool plain = (dw[0] & device::kPollMemory) != 0 &&
                     function_of(dw) == device::kPollAtLeast && dw[4] == ~std::uint32_t{0};
  if (!plain) return bad("POLL_REGMEM that is not 'at least' of a whole word of memory");
  if (!inside("POLL_REGMEM", join(dw + 1), 4, false)) return false;
  out.wait32(join(dw + 1), dw[3]);
  return true;
}

bool Translator::poll64(const std::uint32_t* dw, CommandStream& out) {
  const bool plain = function_of(dw) == device::kPollAtLeast && join(dw + 5) == ~std::uint64_t{0};
  if (!plain) return bad("POLL_MEM_64B that is not 'at least' of a whole word");
  if (!inside("POLL_MEM_64B", join(dw + 1), 8, false)) return false;
  out.wait64(join(dw + 1), join(dw + 3));
  return true;
}

bool Translator::inside(const char* what, std::uint64_t address, std::uint64_t bytes, bool writes) {
  if (windows_.find(address, bytes, writes, hint_) != nullptr) return true;
  return bad(fmt::format(
      "{} {:#x} ({} bytes) lies in no {}window", what, address, bytes, writes ? "writable " : ""));
}

bool Translator::bad(std::string cause) {
  error_ = {
      core::ErrorKind::bad_packet, fmt::format("ring offset {:#x}: {}", position_, cause), {}};
  return false;
}

} // namespace ferry::nvidia
