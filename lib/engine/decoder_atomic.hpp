// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/packet_atomic.hpp"
#include "device/platform.hpp"

namespace ferry::core {

// What the word holds after the operation, an integer one.
template <class Word>
Word apply_atomic(device::AtomicOperation operation, Word old, Word value, Word compare) {
  using Op = device::AtomicOperation;
  const auto less = [](Word a, Word b) {
    using Signed = std::make_signed_t<Word>;
    return static_cast<Signed>(a) < static_cast<Signed>(b);
  };
  switch (operation) {
    case Op::swap:
      return value;
    case Op::compare_swap:
      return old == compare ? value : old;
    case Op::add:
      return old + value;
    case Op::sub:
      return old - value;
    case Op::signed_min:
      return less(value, old) ? value : old;
    case Op::unsigned_min:
      return value < old ? value : old;
    case Op::signed_max:
      return less(old, value) ? value : old;
    case Op::unsigned_max:
      return old < value ? value : old;
    case Op::bit_and:
      return old & value;
    case Op::bit_or:
      return old | value;
    case Op::bit_xor:
      return old ^ value;
    case Op::increment:
      return old >= value ? 0 : old + 1;
    case Op::decrement:
      return old == 0 || old > value ? value : old - 1;
    default:
      return old;
  }
}

// One atomic step, acquire and release. False: others changed the word each time; nothing was done.
template <class Word>
bool try_atomic(device::AtomicOperation operation, Word* word, Word value, Word compare) {
  constexpr int kAttempts = 64;
  Word old = device::load_acquire(word);
  for (int i = 0; i < kAttempts; ++i) {
    if (device::cas(word, old, apply_atomic(operation, old, value, compare))) return true;
  }
  return false;
}

} // namespace ferry::core
