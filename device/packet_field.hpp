// SPDX-License-Identifier: MIT
#pragma once

// Fields of packets: where one lies, what its bits mean, and which values it takes.

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "generation.hpp"
#include "platform.hpp"

namespace ferry::device {

inline constexpr std::uint32_t kPollAtLeast = 5; // function >=
inline constexpr std::uint32_t kAtomicAdd64 = 47; // returning
inline constexpr std::uint32_t kAtomicAdd64NoReturn = 111;
inline constexpr std::uint32_t kScopeSystem = 3; // what other agents write is not seen below it

enum class FieldId : std::uint8_t {
  encrypt,
  tmz,
  npd,
  cpv,
  sys,
  snp,
  gpa,
  mtype,
  policy,
  sw,
  hint,
  scope,
  source_sw,
  source_ha,
  source_policy,
  source_hint,
  source_scope,
  destination_sw,
  destination_ha,
  destination_policy,
  destination_hint,
  destination_scope,
  destination_2_sw,
  dwords,
  bytes,
  source,
  destination,
  destination_2,
  first,
  second,
  element_log2,
  source_x,
  source_y,
  source_z,
  source_pitch,
  source_slice_pitch,
  destination_x,
  destination_y,
  destination_z,
  destination_pitch,
  destination_slice_pitch,
  rect_x,
  rect_y,
  rect_z,
  fill_size,
  pattern,
  word,
  value,
  compare,
  context,
  function,
  memory,
  hdp_flush,
  reference,
  mask,
  interval,
  retries,
  operation,
  loop,
  wait_function,
  wait_scope,
  wait_hint,
  wait_address,
  wait_reference,
  wait_mask,
  signal_operation,
  signal_scope,
  signal_hint,
  signal_address,
  signal_value,
};

inline constexpr const char* kFieldNames[] = {
    "encrypt",
    "tmz",
    "npd",
    "cpv",
    "sys",
    "snp",
    "gpa",
    "mtype",
    "policy",
    "sw",
    "hint",
    "scope",
    "source_sw",
    "source_ha",
    "source_policy",
    "source_hint",
    "source_scope",
    "destination_sw",
    "destination_ha",
    "destination_policy",
    "destination_hint",
    "destination_scope",
    "destination_2_sw",
    "dwords",
    "bytes",
    "source",
    "destination",
    "destination_2",
    "first",
    "second",
    "element_log2",
    "source_x",
    "source_y",
    "source_z",
    "source_pitch",
    "source_slice_pitch",
    "destination_x",
    "destination_y",
    "destination_z",
    "destination_pitch",
    "destination_slice_pitch",
    "rect_x",
    "rect_y",
    "rect_z",
    "fill_size",
    "pattern",
    "word",
    "value",
    "compare",
    "context",
    "function",
    "memory",
    "hdp_flush",
    "reference",
    "mask",
    "interval",
    "retries",
    "operation",
    "loop",
    "wait_function",
    "wait_scope",
    "wait_hint",
    "wait_address",
    "wait_reference",
    "wait_mask",
    "signal_operation",
    "signal_scope",
    "signal_hint",
    "signal_address",
    "signal_value",
};
static_assert(std::size(kFieldNames) == static_cast<std::size_t>(FieldId::signal_value) + 1);

constexpr const char* field_name(FieldId id) {
  return kFieldNames[static_cast<std::size_t>(id)];
}

enum class Meaning : std::uint8_t {
  number,
  option, // a number that is zero unless somebody asks for it
  data,
  count, // stored minus 1; never zero
  address, // never null
  function, // of a comparison
  operation, // of an atomic
  scope,
};

// Up to 64 bits, from `bit` of `dword` on, in this and the following dwords.
struct Field {
  FieldId id;
  Meaning meaning;
  std::uint8_t dword;
  std::uint8_t bit;
  std::uint8_t bits;
  GenerationSet generations;
  std::uint8_t alignment; // of addresses and counts
  std::uint64_t preset; // what builders store that are not told otherwise
};

namespace fields {

constexpr Field number(
    FieldId id, std::uint8_t dword, std::uint8_t bit, std::uint8_t bits,
    GenerationSet generations = kEvery, std::uint64_t preset = 0) {
  return {id, Meaning::number, dword, bit, bits, generations, 1, preset};
}

constexpr Field option(
    FieldId id, std::uint8_t dword, std::uint8_t bit, std::uint8_t bits, GenerationSet generations,
    std::uint64_t preset = 0) {
  return {id, Meaning::option, dword, bit, bits, generations, 1, preset};
}

constexpr Field data(FieldId id, std::uint8_t dword, std::uint8_t bits, std::uint64_t preset = 0) {
  return {id, Meaning::data, dword, 0, bits, kEvery, 1, preset};
}

constexpr Field count(
    FieldId id, std::uint8_t dword, std::uint8_t bit, std::uint8_t bits,
    GenerationSet generations = kEvery, std::uint8_t alignment = 1) {
  return {id, Meaning::count, dword, bit, bits, generations, alignment, 0};
}

constexpr Field address(FieldId id, std::uint8_t dword, std::uint8_t alignment = 1) {
  return {id, Meaning::address, dword, 0, 64, kEvery, alignment, 0};
}

constexpr Field scope_at(
    FieldId id, std::uint8_t dword, std::uint8_t bit, GenerationSet generations = kOss7) {
  return {id, Meaning::scope, dword, bit, 2, generations, 1, kScopeSystem};
}

} // namespace fields

// The largest value that is stored as it is.
constexpr FERRY_DEVICE_FN std::uint64_t max_stored(const Field& field) {
  return ~std::uint64_t{0} >> (64 - field.bits);
}

// The bits of the field in the dword that lies `further` behind its first; 0 for all others.
constexpr FERRY_DEVICE_FN std::uint32_t field_bits(const Field& field, std::size_t further) {
  if (further > 1) return 0;
  const std::uint64_t ones = max_stored(field);
  if (further == 0) return static_cast<std::uint32_t>(ones << field.bit & 0xffffffffu);
  return static_cast<std::uint32_t>(field.bit == 0 ? ones >> 32 : 0);
}

constexpr FERRY_DEVICE_FN std::uint64_t stored_value(const Field& field, const std::uint32_t* dw) {
  std::uint64_t raw = dw[field.dword];
  if (field.bits > 32) raw |= std::uint64_t{dw[field.dword + 1]} << 32;
  return raw >> field.bit & max_stored(field);
}

// What the field says: counts are stored minus 1.
constexpr FERRY_DEVICE_FN std::uint64_t field_value(const Field& field, const std::uint32_t* dw) {
  return stored_value(field, dw) + (field.meaning == Meaning::count ? 1 : 0);
}

// stored fits into the field, whose bits are zero in dw.
constexpr FERRY_DEVICE_FN void store_value(
    const Field& field, std::uint32_t* dw, std::uint64_t stored) {
  dw[field.dword] |= static_cast<std::uint32_t>(stored << field.bit & 0xffffffffu);
  if (field.bits > 32) dw[field.dword + 1] |= static_cast<std::uint32_t>(stored >> 32);
}

} // namespace ferry::device
