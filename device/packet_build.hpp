// SPDX-License-Identifier: MIT
#pragma once

// Builders of the packets of each generation, made from the table. They check every value before
// they encode it: nothing is masked, a refused packet leaves nothing behind. Everything about the
// layout is decided at compile time, so that kernels need no table.

#include <cstddef>
#include <cstdint>

#include "generation.hpp"
#include "packet_atomic.hpp"
#include "packet_table.hpp"
#include "platform.hpp"

namespace ferry::device {

inline constexpr std::uint64_t kSafeCopyBytes = std::uint64_t{128} << 20; // measured safe on GPUs
inline constexpr std::uint64_t kMaxSwapBytes = 0x3fffffe0;

enum class PacketStatus : std::uint32_t {
  ok = 0,
  zero_bytes,
  too_long, // or a value that its field cannot hold
  misaligned,
  null_address,
  unsupported, // the generation has no such packet or operation
};

template <std::size_t N>
struct PacketWords {
  std::uint32_t dw[N];
};

// One side of a strided copy. Positions and pitches are in elements; those of the large packet in
// bytes and rows.
struct Subwindow {
  std::uint64_t base = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice_pitch = 1;
};

struct Rect {
  std::uint64_t x = 1;
  std::uint64_t y = 1;
  std::uint64_t z = 1;
};

struct CopyRange {
  std::uint64_t destination = 0;
  std::uint64_t source = 0;
  std::uint64_t bytes = 0;
};

// A fused copy waits until the 64-bit word at address is >= reference,
struct FusedWait {
  std::uint64_t address = 0;
  std::uint64_t reference = 0;
};

// and adds value to the 64-bit word at address behind its last byte.
struct FusedSignal {
  std::uint64_t address = 0;
  std::uint64_t value = 1;
};

namespace detail {

template <FieldId>
using FieldInput = std::uint64_t;

template <PacketKind K>
using WordsOf = PacketWords<packet_of(K).dwords()>;

template <Generation G, PacketKind K, FieldId Id>
inline constexpr Field kFieldOf = field_of(packet_of(K), G, Id);

template <Generation G, PacketKind K>
inline constexpr bool kHasPacket = contains(packet_of(K).generations, G);

template <Generation G>
inline constexpr std::uint64_t kSwapUnit = generation_info(G).swap_alignment;

// Opcode and presets, less the fields that are given.
template <Generation G, PacketKind K, FieldId... Given>
consteval WordsOf<K> preset_words() {
  WordsOf<K> words{};
  const Packet& packet = packet_of(K);
  words.dw[0] = std::uint32_t{packet.op} | std::uint32_t{packet.sub_op} << 8 | packet.select;
  for_each_field(packet, G, [&](const Field& field, std::size_t base) {
    if (((field.id == Given) || ...)) return;
    store_value(field, words.dw + base, field.preset);
  });
  return words;
}

constexpr FERRY_DEVICE_FN PacketStatus check_field(const Field& field, std::uint64_t value) {
  if (field.meaning == Meaning::count && value == 0) return PacketStatus::zero_bytes;
  if (field.meaning == Meaning::address && value == 0) return PacketStatus::null_address;
  const std::uint64_t stored = field.meaning == Meaning::count ? value - 1 : value;
  if (stored > max_stored(field)) return PacketStatus::too_long;
  return value % field.alignment == 0 ? PacketStatus::ok : PacketStatus::misaligned;
}

template <Generation G, PacketKind K, FieldId Id>
constexpr FERRY_DEVICE_FN PacketStatus check_value(PacketStatus before, std::uint64_t value) {
  constexpr Field kField = kFieldOf<G, K, Id>;
  static_assert(kField.bits != 0, "the packet has no such field");
  return before != PacketStatus::ok ? before : check_field(kField, value);
}

template <Generation G, PacketKind K, FieldId Id>
constexpr FERRY_DEVICE_FN void put_value(std::uint32_t* dw, std::uint64_t value) {
  constexpr Field kField = kFieldOf<G, K, Id>;
  store_value(kField, dw, kField.meaning == Meaning::count ? value - 1 : value);
}

// The first value that is refused decides about the status.
template <Generation G, PacketKind K, FieldId... Ids>
constexpr FERRY_DEVICE_FN PacketStatus encode(std::uint32_t* dw, FieldInput<Ids>... values) {
  if constexpr (!kHasPacket<G, K>) {
    ((void)values, ...);
    return PacketStatus::unsupported;
  } else {
    PacketStatus status = PacketStatus::ok;
    ((status = check_value<G, K, Ids>(status, values)), ...);
    if (status != PacketStatus::ok) return status;
    constexpr WordsOf<K> kPreset = preset_words<G, K, Ids...>();
    for (std::size_t i = 0; i < sizeof kPreset / 4; ++i) dw[i] = kPreset.dw[i];
    (put_value<G, K, Ids>(dw, values), ...);
    return PacketStatus::ok;
  }
}

} // namespace detail

using CopyPacket = detail::WordsOf<PacketKind::copy>;
using CopyTwoPacket = detail::WordsOf<PacketKind::copy_two>;
using SwapPacket = detail::WordsOf<PacketKind::swap>;
using SubwindowPacket = detail::WordsOf<PacketKind::subwindow>;
using SubwindowLargePacket = detail::WordsOf<PacketKind::subwindow_large>;
using WriteHeader = detail::WordsOf<PacketKind::write>; // the dwords before the inline data
using FillPacket = detail::WordsOf<PacketKind::fill>;
using FencePacket = detail::WordsOf<PacketKind::fence>;
using Fence64Packet = detail::WordsOf<PacketKind::fence64>;
using TrapPacket = detail::WordsOf<PacketKind::trap>;
using PollPacket = detail::WordsOf<PacketKind::poll>;
using Poll64Packet = detail::WordsOf<PacketKind::poll64>;
using AtomicPacket = detail::WordsOf<PacketKind::atomic>;
using TimestampPacket = detail::WordsOf<PacketKind::timestamp>;
using CopyWaitPacket = detail::WordsOf<PacketKind::copy_wait>;
using CopySignalPacket = detail::WordsOf<PacketKind::copy_signal>;
using CopyWaitSignalPacket = detail::WordsOf<PacketKind::copy_wait_signal>;

// One function for each packet; all return ok, or why there is no packet.
template <Generation G>
struct Build {
  using F = FieldId;
  using K = PacketKind;
  using Status = PacketStatus;
  static constexpr bool kFused = detail::kHasPacket<G, K::copy_wait>;

  // The first dword of a NOP that takes so many dwords in all; the others are ignored.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  nop(std::uint32_t& out, std::uint64_t dwords) {
    return detail::encode<G, K::nop, F::dwords>(&out, dwords);
  }

  // Any alignment. A zero-byte copy does not exist: the caller emits nothing.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  copy(CopyPacket& out, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
    return detail::encode<G, K::copy, F::bytes, F::destination, F::source>(
        out.dw, bytes, destination, source);
  }

  // Reads once, writes twice.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status copy_two(
      CopyTwoPacket& out, std::uint64_t destination, std::uint64_t destination_2,
      std::uint64_t source, std::uint64_t bytes) {
    return detail::encode<G, K::copy_two, F::bytes, F::destination, F::destination_2, F::source>(
        out.dw, bytes, destination, destination_2, source);
  }

  // Exchanges two ranges that do not overlap.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  swap(SwapPacket& out, std::uint64_t first, std::uint64_t second, std::uint64_t bytes) {
    SwapPacket packet{};
    const Status status =
        detail::encode<G, K::swap, F::bytes, F::first, F::second>(packet.dw, bytes, first, second);
    if (status != Status::ok) return status;
    if (bytes > kMaxSwapBytes) return Status::too_long;
    constexpr std::uint64_t kUnit = detail::kSwapUnit<G>;
    if constexpr (kUnit > 1) {
      if ((first | second | bytes) % kUnit != 0) return Status::misaligned;
    }
    out = packet;
    return Status::ok;
  }

  // Elements have 1 << element_log2 bytes, at most 16. Bases and pitches are multiples of 4 bytes.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status subwindow(
      SubwindowPacket& out, const Subwindow& to, const Subwindow& from, const Rect& rect,
      std::uint32_t element_log2) {
    if (element_log2 > 4) return Status::too_long;
    const std::uint64_t unit = element_log2 < 2 ? std::uint64_t{4} >> element_log2 : 1;
    const bool flat = rect.z == 1; // then nobody looks at slice pitches
    if (to.pitch % unit != 0 || from.pitch % unit != 0) return Status::misaligned;
    if (!flat && (to.slice_pitch % unit != 0 || from.slice_pitch % unit != 0)) {
      return Status::misaligned;
    }
    return detail::encode<
        G, K::subwindow, F::element_log2, F::destination, F::destination_x, F::destination_y,
        F::destination_z, F::destination_pitch, F::destination_slice_pitch, F::source, F::source_x,
        F::source_y, F::source_z, F::source_pitch, F::source_slice_pitch, F::rect_x, F::rect_y,
        F::rect_z>(
        out.dw, element_log2, to.base, to.x, to.y, to.z, to.pitch, to.slice_pitch, from.base,
        from.x, from.y, from.z, from.pitch, from.slice_pitch, rect.x, rect.y, rect.z);
  }

  // One slice: rect.z is 1, z and slice pitches are not looked at.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status subwindow_large(
      SubwindowLargePacket& out, const Subwindow& to, const Subwindow& from, const Rect& rect) {
    if (rect.z != 1) return rect.z == 0 ? Status::zero_bytes : Status::unsupported;
    return detail::encode<
        G, K::subwindow_large, F::destination, F::destination_x, F::destination_y,
        F::destination_pitch, F::source, F::source_x, F::source_y, F::source_pitch, F::rect_x,
        F::rect_y>(
        out.dw, to.base, to.x, to.y, to.pitch, from.base, from.x, from.y, from.pitch, rect.x,
        rect.y);
  }

  // The header of 4 + dwords dwords: the caller places the data behind it. Never for completion
  // flags: an engine may overlap a copy and a following write.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  write(WriteHeader& out, std::uint64_t destination, std::uint64_t dwords) {
    return detail::encode<G, K::write, F::dwords, F::destination>(out.dw, dwords, destination);
  }

  // Fills with a repeated dword.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  fill(FillPacket& out, std::uint64_t destination, std::uint32_t pattern, std::uint64_t bytes) {
    return detail::encode<G, K::fill, F::bytes, F::destination, F::pattern>(
        out.dw, bytes, destination, pattern);
  }

  // Stores a value after everything before it on the queue.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  fence(FencePacket& out, std::uint64_t address, std::uint32_t value) {
    return detail::encode<G, K::fence, F::word, F::value>(out.dw, address, value);
  }

  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  fence64(Fence64Packet& out, std::uint64_t address, std::uint64_t value) {
    return detail::encode<G, K::fence64, F::word, F::value>(out.dw, address, value);
  }

  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  trap(TrapPacket& out, std::uint32_t context) {
    return detail::encode<G, K::trap, F::context>(out.dw, context);
  }

  // Holds the queue until the word at address is >= reference.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  poll(PollPacket& out, std::uint64_t address, std::uint32_t reference) {
    return detail::encode<G, K::poll, F::word, F::reference>(out.dw, address, reference);
  }

  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  poll64(Poll64Packet& out, std::uint64_t address, std::uint64_t reference) {
    return detail::encode<G, K::poll64, F::word, F::reference>(out.dw, address, reference);
  }

  // Acts on a word of 4 or 8 bytes after everything before it on the queue.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status atomic(
      AtomicPacket& out, AtomicOperation operation, std::uint64_t word_bytes, bool returns,
      std::uint64_t address, std::uint64_t value, std::uint64_t compare = 0) {
    if (word_bytes != 4 && word_bytes != 8) return Status::unsupported;
    if (!has_atomic(G, operation, word_bytes)) return Status::unsupported;
    if (word_bytes == 4 && (value | compare) >> 32 != 0) return Status::too_long;
    if (address % word_bytes != 0) return Status::misaligned;
    return detail::encode<G, K::atomic, F::operation, F::word, F::value, F::compare>(
        out.dw, atomic_code(operation, word_bytes, returns), address, value, compare);
  }

  // Stores the engine's 64-bit clock.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  timestamp(TimestampPacket& out, std::uint64_t destination) {
    return detail::encode<G, K::timestamp, F::destination>(out.dw, destination);
  }

  // Fused packets are compacted: a block that is not used is not there. They are capped at what is
  // known to work, since a long one was seen to hang.
  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  copy_wait(CopyWaitPacket& out, const CopyRange& range, const FusedWait& wait) {
    if (kFused && range.bytes > kSafeCopyBytes) return Status::too_long;
    return detail::encode<
        G, K::copy_wait, F::bytes, F::destination, F::source, F::wait_address, F::wait_reference>(
        out.dw, range.bytes, range.destination, range.source, wait.address, wait.reference);
  }

  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status
  copy_signal(CopySignalPacket& out, const CopyRange& range, const FusedSignal& signal) {
    if (kFused && range.bytes > kSafeCopyBytes) return Status::too_long;
    return detail::encode<
        G, K::copy_signal, F::bytes, F::destination, F::source, F::signal_address, F::signal_value>(
        out.dw, range.bytes, range.destination, range.source, signal.address, signal.value);
  }

  [[nodiscard]] static constexpr FERRY_DEVICE_FN Status copy_wait_signal(
      CopyWaitSignalPacket& out, const CopyRange& range, const FusedWait& wait,
      const FusedSignal& signal) {
    if (kFused && range.bytes > kSafeCopyBytes) return Status::too_long;
    return detail::encode<
        G, K::copy_wait_signal, F::bytes, F::destination, F::source, F::wait_address,
        F::wait_reference, F::signal_address, F::signal_value>(
        out.dw, range.bytes, range.destination, range.source, wait.address, wait.reference,
        signal.address, signal.value);
  }
};

} // namespace ferry::device
