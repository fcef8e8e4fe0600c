// SPDX-License-Identifier: MIT
#pragma once

// The part of the decoder that executes every packet of a generation, by the table of packets. Only
// decoder.cpp includes it. What a packet touches is checked before its first byte moves.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "device/platform.hpp"
#include "lib/engine/decoder.hpp"
#include "lib/engine/decoder_atomic.hpp"

namespace ferry::core {

// Every set bit is a field, and none asks for what a CPU cannot do.
inline bool Decoder::Fields::understood() const {
  using device::FieldId;
  for (std::size_t i = 0; i < packet.dwords(); ++i) {
    if ((dw[i] & ~device::defined_bits(packet, generation, i)) != 0) return false;
  }
  constexpr FieldId kRefused[] = {FieldId::encrypt, FieldId::tmz, FieldId::loop};
  return std::none_of(std::begin(kRefused), std::end(kRefused), [&](FieldId id) {
    const device::Field field = device::field_of(packet, generation, id);
    return field.bits != 0 && device::field_value(field, dw) != 0;
  });
}

inline StepState Decoder::step_generation(
    const std::uint32_t* dw, std::uint64_t published, std::uint64_t contiguous,
    std::uint64_t* used) {
  const device::Packet* const packet = device::find_packet(*generation_, dw[0]);
  if (packet == nullptr) {
    return bad(fmt::format(
        "unknown packet {:#010x} on {}", dw[0], device::generation_info(*generation_).name));
  }
  const std::uint64_t fixed = packet->dwords();
  const bool measurable = fixed <= published && fixed <= contiguous;
  const std::uint64_t dwords =
      measurable ? device::packet_dwords(*packet, *generation_, dw) : fixed;
  if (packet->tail != device::Tail::skipped) {
    if (dwords > published) return bad(fmt::format("{} is cut off by the doorbell", packet->name));
    if (dwords > contiguous) return bad(fmt::format("{} straddles the ring's end", packet->name));
  }
  const Fields fields{*packet, *generation_, dw};
  if (!fields.understood()) {
    return bad(fmt::format(
        "{} with header {:#010x} has fields that are not understood", packet->name, dw[0]));
  }
  *used = std::min(dwords, published); // only a NOP is longer, and skips at most to the doorbell
  return execute_fields(fields, dwords);
}

// One case for each packet, hence more than 40 lines. Where the dwords that matter have the same
// layout everywhere, the functions of the other path do it.
inline StepState Decoder::execute_fields(const Fields& f, std::uint64_t dwords) {
  using device::FieldId;
  using device::PacketKind;
  switch (f.packet.kind) {
    case PacketKind::nop:
      return StepState::done;
    case PacketKind::copy:
      return transfer(
          f.packet.name, f(FieldId::destination), f(FieldId::source), f(FieldId::bytes));
    case PacketKind::copy_two:
      return copy_two(f);
    case PacketKind::swap:
      return swap(f);
    case PacketKind::subwindow:
      return subwindow(f);
    case PacketKind::subwindow_large:
      return subwindow_large(f);
    case PacketKind::write:
      if (f(FieldId::destination) % 4 != 0) return bad("WRITE_LINEAR to no dword");
      return write_words(f(FieldId::destination), f.dw + 4, dwords - 4);
    case PacketKind::fill:
      if (f(FieldId::fill_size) != 2 || (f(FieldId::destination) | f(FieldId::bytes)) % 4 != 0) {
        return bad("CONST_FILL is not one of dwords");
      }
      return fill_words(
          f(FieldId::destination), static_cast<std::uint32_t>(f(FieldId::pattern)),
          f(FieldId::bytes));
    case PacketKind::fence:
      return fence(f.dw);
    case PacketKind::fence64:
      return store64(f.packet.name, f(FieldId::word), f(FieldId::value));
    case PacketKind::timestamp: {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      return store64(
          f.packet.name, f(FieldId::destination),
          static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()));
    }
    case PacketKind::trap:
      return trap();
    case PacketKind::poll:
      return poll(f.dw);
    case PacketKind::poll64:
      return poll64(f.dw);
    case PacketKind::atomic:
      return any_atomic(
          static_cast<std::uint32_t>(f(FieldId::operation)), f(FieldId::word), f(FieldId::value),
          f(FieldId::compare));
    case PacketKind::copy_wait:
    case PacketKind::copy_signal:
    case PacketKind::copy_wait_signal:
      return fused(f);
  }
  return bad("a packet of no kind");
}

inline StepState Decoder::copy_two(const Fields& f) {
  using device::FieldId;
  const std::uint64_t bytes = f(FieldId::bytes);
  const std::uint64_t second = f(FieldId::destination_2);
  if ((f(FieldId::destination) | second) % 32 != 0) {
    return bad(fmt::format("{} to addresses that are not aligned to 32 bytes", f.packet.name));
  }
  if (find(second, bytes, true, destination_hint_) == nullptr) {
    return outside(f.packet.name, " to", second, bytes, true);
  }
  const StepState first =
      transfer(f.packet.name, f(FieldId::destination), f(FieldId::source), bytes);
  if (first != StepState::done) return first;
  return transfer(f.packet.name, second, f(FieldId::source), bytes);
}

inline StepState Decoder::swap(const Fields& f) {
  using device::FieldId;
  const std::uint64_t a = f(FieldId::first);
  const std::uint64_t b = f(FieldId::second);
  const std::uint64_t bytes = f(FieldId::bytes);
  const std::uint64_t unit = device::generation_info(f.generation).swap_alignment;
  if ((a | b | bytes) % unit != 0 || a - b < bytes || b - a < bytes) {
    return bad(fmt::format(
        "COPY_SWAP of {:#x} and {:#x} ({} bytes): not in units of {} bytes, or overlapping", a, b,
        bytes, unit));
  }
  const Window* const one = find(a, bytes, true, source_hint_);
  if (one == nullptr) return outside("COPY_SWAP", " of", a, bytes, true);
  const Window* const other = find(b, bytes, true, destination_hint_);
  if (other == nullptr) return outside("COPY_SWAP", " of", b, bytes, true);
  std::array<unsigned char, 4096> kept;
  const Window here{
      reinterpret_cast<std::uint64_t>(kept.data()), kept.size(), true, self_, 0, 0, "swap"};
  StepState state = StepState::done;
  for (std::uint64_t at = 0; at < bytes && state == StepState::done; at += kept.size()) {
    const std::uint64_t length = std::min<std::uint64_t>(kept.size(), bytes - at);
    state = move({&here, here.base}, {one, a + at}, length);
    if (state == StepState::done) state = move({one, a + at}, {other, b + at}, length);
    if (state == StepState::done) state = push({other, b + at}, kept.data(), length);
  }
  return state;
}

inline StepState Decoder::subwindow(const Fields& f) {
  using device::FieldId;
  const std::uint64_t log2 = f(FieldId::element_log2);
  if (log2 > 4) return bad(fmt::format("{} with elements of 2^{} bytes", f.packet.name, log2));
  const std::uint64_t unit = std::uint64_t{1} << log2;
  const auto side = [&](FieldId base, FieldId x, FieldId y, FieldId z, FieldId pitch,
                        FieldId slice) {
    Rows rows{f(base) + f(x) * unit, f(pitch) * unit, f(slice) * unit};
    rows.first = rows.at(f(y), f(z));
    return rows;
  };
  const Rows to = side(
      FieldId::destination, FieldId::destination_x, FieldId::destination_y, FieldId::destination_z,
      FieldId::destination_pitch, FieldId::destination_slice_pitch);
  const Rows from = side(
      FieldId::source, FieldId::source_x, FieldId::source_y, FieldId::source_z,
      FieldId::source_pitch, FieldId::source_slice_pitch);
  return strided(
      f.packet.name, to, from, {f(FieldId::rect_x) * unit, f(FieldId::rect_y), f(FieldId::rect_z)});
}

inline StepState Decoder::subwindow_large(const Fields& f) {
  using device::FieldId;
  if (f(FieldId::rect_z) != 1 || (f(FieldId::source_z) | f(FieldId::destination_z)) != 0) {
    return bad(fmt::format("{} of more than one slice", f.packet.name));
  }
  Rows to{f(FieldId::destination) + f(FieldId::destination_x), f(FieldId::destination_pitch), 0};
  Rows from{f(FieldId::source) + f(FieldId::source_x), f(FieldId::source_pitch), 0};
  to.first = to.at(f(FieldId::destination_y), 0);
  from.first = from.at(f(FieldId::source_y), 0);
  return strided(f.packet.name, to, from, {f(FieldId::rect_x), f(FieldId::rect_y), 1});
}

// All rows are looked up before the first one moves.
inline StepState Decoder::strided(
    const char* packet, const Rows& to, const Rows& from, const Box& box) {
  for (const bool moving : {false, true}) {
    for (std::uint64_t z = 0; z < box.slices; ++z) {
      for (std::uint64_t y = 0; y < box.rows; ++y) {
        const std::uint64_t source = from.at(y, z);
        const std::uint64_t destination = to.at(y, z);
        if (moving) {
          const StepState state = transfer(packet, destination, source, box.row_bytes);
          if (state != StepState::done) return state;
        } else if (find(source, box.row_bytes, false, source_hint_) == nullptr) {
          return outside(packet, " from row", source, box.row_bytes, false);
        } else if (find(destination, box.row_bytes, true, destination_hint_) == nullptr) {
          return outside(packet, " to row", destination, box.row_bytes, true);
        }
      }
    }
  }
  return StepState::done;
}

// Waits, copies, signals. A wait that does not hold leaves the whole packet for later, and so does
// a signal that finds its word contended: nobody was told of the copy yet, so it may be made again.
inline StepState Decoder::fused(const Fields& f) {
  using device::FieldId;
  using device::PacketKind;
  const bool waits = f.packet.kind != PacketKind::copy_signal;
  const bool signals = f.packet.kind != PacketKind::copy_wait;
  const auto code = static_cast<std::uint32_t>(signals ? f(FieldId::signal_operation) : 0);
  if (signals && !device::is_integer(static_cast<device::AtomicOperation>(code & 31))) {
    return bad(fmt::format("{} with operation {}, which is none of integers", f.packet.name, code));
  }
  if (signals &&
      word(f.packet.name, f(FieldId::signal_address), 8, true, signal_hint_) == nullptr) {
    return StepState::failed;
  }
  if (waits) {
    const StepState held = hold64(
        f.packet.name, static_cast<std::uint32_t>(f(FieldId::wait_function)),
        f(FieldId::wait_address), f(FieldId::wait_reference), f(FieldId::wait_mask));
    if (held != StepState::done) return held;
  }
  const StepState copied =
      transfer(f.packet.name, f(FieldId::destination), f(FieldId::source), f(FieldId::bytes));
  if (copied != StepState::done || !signals) return copied;
  return any_atomic(code, f(FieldId::signal_address), f(FieldId::signal_value), 0);
}

inline StepState Decoder::any_atomic(
    std::uint32_t code, std::uint64_t address, std::uint64_t value, std::uint64_t compare) {
  const auto operation = static_cast<device::AtomicOperation>(code & 31);
  if (!device::is_integer(operation)) {
    return bad(fmt::format("ATOMIC with operation {}, which is none of integers", code));
  }
  const std::uint64_t bytes = (code & device::kAtomic64) != 0 ? 8 : 4;
  const Window* const window = word("ATOMIC", address, bytes, true, signal_hint_);
  if (window == nullptr) return StepState::failed;
  bool done = false;
  if (bytes == 8) {
    done = try_atomic(operation, reinterpret_cast<std::uint64_t*>(address), value, compare);
  } else {
    done = try_atomic(
        operation, reinterpret_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(value),
        static_cast<std::uint32_t>(compare));
  }
  if (!done) return StepState::blocked; // the queue comes back to it
  announce(*window);
  return StepState::done;
}

inline StepState Decoder::store64(const char* packet, std::uint64_t address, std::uint64_t value) {
  const Window* const window = word(packet, address, 8, true, signal_hint_);
  if (window == nullptr) return StepState::failed;
  device::store_release(reinterpret_cast<std::uint64_t*>(address), value);
  announce(*window);
  return StepState::done;
}

} // namespace ferry::core
