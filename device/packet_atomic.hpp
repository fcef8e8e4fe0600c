// SPDX-License-Identifier: MIT
#pragma once

// The operations of the ATOMIC packet: 5 bits of operation, bit 5 for 64-bit words, bit 6 for those
// that return nothing.

#include <cstdint>

#include "generation.hpp"
#include "platform.hpp"

namespace ferry::device {

enum class AtomicOperation : std::uint8_t {
  float_compare_swap = 1,
  float_min = 2,
  float_max = 3,
  add_packed_f16 = 4, // these three: 32-bit words of gfx1250 only
  add_float = 5,
  add_packed_bf16 = 6,
  swap = 7,
  compare_swap = 8,
  add = 15,
  sub = 16,
  signed_min = 17,
  unsigned_min = 18,
  signed_max = 19,
  unsigned_max = 20,
  bit_and = 21,
  bit_or = 22,
  bit_xor = 23,
  increment = 24, // to 0 where the word is not below the value
  decrement = 25, // to the value where the word is 0 or above it
};

inline constexpr std::uint32_t kAtomic64 = 32;
inline constexpr std::uint32_t kAtomicNoReturn = 64;

struct AtomicName {
  AtomicOperation operation;
  const char* name;
};

inline constexpr AtomicName kAtomicNames[] = {
    {AtomicOperation::float_compare_swap, "float_compare_swap"},
    {AtomicOperation::float_min, "float_min"},
    {AtomicOperation::float_max, "float_max"},
    {AtomicOperation::add_packed_f16, "add_packed_f16"},
    {AtomicOperation::add_float, "add_float"},
    {AtomicOperation::add_packed_bf16, "add_packed_bf16"},
    {AtomicOperation::swap, "swap"},
    {AtomicOperation::compare_swap, "compare_swap"},
    {AtomicOperation::add, "add"},
    {AtomicOperation::sub, "sub"},
    {AtomicOperation::signed_min, "signed_min"},
    {AtomicOperation::unsigned_min, "unsigned_min"},
    {AtomicOperation::signed_max, "signed_max"},
    {AtomicOperation::unsigned_max, "unsigned_max"},
    {AtomicOperation::bit_and, "and"},
    {AtomicOperation::bit_or, "or"},
    {AtomicOperation::bit_xor, "xor"},
    {AtomicOperation::increment, "increment"},
    {AtomicOperation::decrement, "decrement"},
};

// Null for a code that is no operation.
constexpr const char* atomic_name(std::uint32_t code) {
  for (const AtomicName& known : kAtomicNames) {
    if (static_cast<std::uint32_t>(known.operation) == (code & 31)) return known.name;
  }
  return nullptr;
}

constexpr FERRY_DEVICE_FN std::uint32_t atomic_code(
    AtomicOperation operation, std::uint64_t bytes, bool returns) {
  return static_cast<std::uint32_t>(operation) | (bytes == 8 ? kAtomic64 : 0) |
         (returns ? 0 : kAtomicNoReturn);
}

constexpr FERRY_DEVICE_FN bool is_integer(AtomicOperation operation) {
  return operation == AtomicOperation::swap || operation == AtomicOperation::compare_swap ||
         (operation >= AtomicOperation::add && operation <= AtomicOperation::decrement);
}

constexpr FERRY_DEVICE_FN bool has_atomic(
    Generation generation, AtomicOperation operation, std::uint64_t bytes) {
  if (is_integer(operation)) return true;
  const bool everywhere =
      operation >= AtomicOperation::float_compare_swap && operation <= AtomicOperation::float_max;
  if (everywhere) return generation != Generation::software;
  const bool adds =
      operation >= AtomicOperation::add_packed_f16 && operation <= AtomicOperation::add_packed_bf16;
  return adds && generation == Generation::gfx1250 && bytes == 4;
}

} // namespace ferry::device
