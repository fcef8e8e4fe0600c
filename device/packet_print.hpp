// SPDX-License-Identifier: MIT
#pragma once

// Packets as text, from the same table that builds them. Host code; not part of the umbrella
// header.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>

#include "packet_atomic.hpp"
#include "packet_table.hpp"

namespace ferry::device {

namespace detail {

inline std::string hex(std::uint64_t value, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*" PRIx64, digits, value);
  return text;
}

inline std::string operation_text(std::uint32_t code) {
  const char* const name = atomic_name(code);
  if (name == nullptr) return std::to_string(code) + "(unknown)";
  return std::string(name) + ((code & kAtomic64) != 0 ? "_64" : "_32") +
         ((code & kAtomicNoReturn) != 0 ? "_no_return" : "");
}

inline std::string value_text(const Field& field, std::uint64_t value) {
  static constexpr const char* kFunctions[] = {"always", "<", "<=", "==", "!=", ">=", ">"};
  static constexpr const char* kScopes[] = {"cu", "se", "device", "system"};
  switch (field.meaning) {
    case Meaning::function:
      return value < std::size(kFunctions) ? kFunctions[value]
                                           : std::to_string(value) + "(unknown)";
    case Meaning::scope:
      return kScopes[value & 3];
    case Meaning::operation:
      return operation_text(static_cast<std::uint32_t>(value));
    case Meaning::address:
    case Meaning::data:
      return hex(value);
    case Meaning::number:
    case Meaning::option:
    case Meaning::count:
      break;
  }
  return std::to_string(value);
}

inline std::uint64_t leading_zeros(std::span<const std::uint32_t> dw) {
  std::uint64_t n = 0;
  for (; n < dw.size() && dw[n] == 0;) ++n;
  return n;
}

} // namespace detail

// " name=value" for each field of a complete packet; options that are zero are left out. Bits that
// are no field follow as "undefined[dword]=bits".
inline std::string print_fields(
    const Packet& packet, Generation generation, const std::uint32_t* dw) {
  std::string text;
  for_each_field(packet, generation, [&](const Field& field, std::size_t base) {
    const std::uint64_t value = field_value(field, dw + base);
    if (field.meaning == Meaning::option && value == 0) return;
    text += std::string(" ") + field_name(field.id) + "=" + detail::value_text(field, value);
  });
  for (std::size_t i = 0; i < packet.dwords(); ++i) {
    const std::uint32_t rest = dw[i] & ~defined_bits(packet, generation, i);
    if (rest != 0) text += " undefined[" + std::to_string(i) + "]=" + detail::hex(rest, 8);
  }
  return text;
}

// What the words at an offset of a dump are. used == 0: not a complete packet of the generation,
// and where the next one begins is not known.
struct PrintedPacket {
  std::string text;
  std::uint64_t used = 0;
  bool clean = false; // complete, and every bit of it defined
};

inline PrintedPacket print_packet(std::span<const std::uint32_t> dw, Generation generation) {
  if (dw.empty()) return {"nothing", 0, false};
  const Packet* const packet = find_packet(generation, dw[0]);
  if (packet == nullptr) return {"unknown packet " + detail::hex(dw[0], 8), 0, false};
  const std::string name = packet->name;
  const auto cut = [&](std::uint64_t needed) {
    return PrintedPacket{
        name + " is cut off: " + std::to_string(dw.size()) + " of " + std::to_string(needed) +
            " dwords",
        0, false};
  };
  if (packet->dwords() > dw.size()) return cut(packet->dwords());
  const std::uint64_t all = packet_dwords(*packet, generation, dw.data());
  if (all > dw.size()) return cut(all);
  std::string text = name + print_fields(*packet, generation, dw.data());
  const bool clean = text.find(" undefined[") == std::string::npos;
  if (packet->tail == Tail::data) {
    for (std::uint64_t i = packet->dwords(); i < all; ++i) {
      text += (i == packet->dwords() ? " data=" : ",") + detail::hex(dw[i], 8);
    }
  }
  return {text, all, clean};
}

// A dump as lines "offset packet fields"; NOPs of one dword in a row are one line. False: something
// is no complete packet of the generation; the line with its offset says what.
template <class Line>
bool print_ring(std::span<const std::uint32_t> dw, Generation generation, Line line) {
  bool clean = true;
  for (std::uint64_t at = 0; at < dw.size();) {
    PrintedPacket printed = print_packet(dw.subspan(at), generation);
    const std::uint64_t zeros = detail::leading_zeros(dw.subspan(at));
    if (zeros > 1) {
      printed.text += " x" + std::to_string(zeros);
      printed.used = zeros;
    }
    line(detail::hex(at * 4, 8) + " " + printed.text);
    if (printed.used == 0) return false;
    clean = clean && printed.clean;
    at += printed.used;
  }
  return clean;
}

} // namespace ferry::device
