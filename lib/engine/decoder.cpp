// SPDX-License-Identifier: MIT
#include "lib/engine/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "device/copy.hpp"
#include "device/platform.hpp"
#include "lib/engine/cross_memory.hpp"
#include "lib/engine/decoder_generation.hpp"

namespace ferry::core {

namespace {

using device::PacketInfo;
using device::PacketKind;

constexpr std::uint32_t kAtomicAdd64NoReturn = 111;

std::uint64_t join(const std::uint32_t* dw) {
  return dw[0] | std::uint64_t{dw[1]} << 32;
}

template <class Word>
Word* local(std::uint64_t address) {
  return reinterpret_cast<Word*>(address);
}

std::uint64_t remote(const Window& window, std::uint64_t address) {
  return window.remote_base + (address - window.base);
}

// Ranges that overlap are legal in a packet, and here they mean what memmove means.
void copy_local(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (to - from < bytes || from - to < bytes) {
    std::memmove(local<void>(to), local<void>(from), bytes);
  } else {
    device::copy_bytes(local<void>(to), local<void>(from), bytes);
  }
}

// The function field of the poll packets. 7 is no function.
template <class Word>
StepState compare(std::uint32_t function, Word value, Word reference) {
  const std::array<bool, 7> holds = {
      true, value<
                reference, value <= reference, value == reference, value != reference,
                value >= reference, value>
                reference};
  if (function >= holds.size()) return StepState::failed;
  return holds[function] ? StepState::done : StepState::blocked;
}

} // namespace

StepState Decoder::step(
    const std::uint32_t* dw, std::uint64_t published, std::uint64_t contiguous,
    std::uint64_t* used) {
  if (generation_) return step_generation(dw, published, contiguous, used);
  const PacketInfo* const info = device::find_packet(dw[0]);
  if (info == nullptr) return bad(fmt::format("unknown packet {:#010x}", dw[0]));
  if ((dw[0] >> 16 << 16 & ~info->header_bits) != 0) {
    return bad(fmt::format("{} with header {:#010x}, which is not understood", info->name, dw[0]));
  }
  const bool measurable = info->min_dwords <= published && info->min_dwords <= contiguous;
  const std::uint64_t dwords =
      measurable ? device::packet_dwords(*info, dw) : std::uint64_t{info->min_dwords};
  if (info->kind == PacketKind::nop) {
    *used = std::min(dwords, published); // skipping stops at the doorbell
    return StepState::done;
  }
  if (dwords > published) return bad(fmt::format("{} is cut off by the doorbell", info->name));
  if (dwords > contiguous) return bad(fmt::format("{} straddles the ring's end", info->name));
  *used = dwords;
  return execute(info->kind, dw, dwords);
}

StepState Decoder::execute(PacketKind kind, const std::uint32_t* dw, std::uint64_t dwords) {
  switch (kind) {
    case PacketKind::copy:
      return copy(dw);
    case PacketKind::atomic:
      return atomic(dw);
    case PacketKind::poll64:
      return poll64(dw);
    case PacketKind::fence:
      return fence(dw);
    case PacketKind::poll:
      return poll(dw);
    case PacketKind::write:
      return write(dw, dwords - 4);
    case PacketKind::fill:
      return fill(dw);
    case PacketKind::trap:
      return trap();
    default: // not in kPackets
      return bad(fmt::format("{} is not executed", device::packet_of(kind).name));
  }
}

StepState Decoder::copy(const std::uint32_t* dw) {
  const std::uint64_t bytes = std::uint64_t{dw[1]} + 1;
  if (bytes > device::kMaxCopyBytes || dw[2] != 0) {
    return bad(fmt::format(
        "COPY_LINEAR with count {:#010x} and parameters {:#010x}, which are not understood", dw[1],
        dw[2]));
  }
  return transfer("COPY_LINEAR", join(dw + 5), join(dw + 3), bytes);
}

StepState Decoder::transfer(
    const char* packet, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  const Window* const source = find(from, bytes, false, source_hint_);
  if (source == nullptr) return outside(packet, " from", from, bytes, false);
  const Window* const destination = find(to, bytes, true, destination_hint_);
  if (destination == nullptr) return outside(packet, " to", to, bytes, true);
  return move({destination, to}, {source, from}, bytes);
}

StepState Decoder::move(const Place& to, const Place& from, std::uint64_t bytes) {
  if (from.window->pid == 0) return push(to, local<void>(from.address), bytes);
  if (to.window->pid != 0) {
    return bad(fmt::format(
        "COPY_LINEAR between windows {} and {}, which both lie in other processes",
        from.window->name, to.window->name));
  }
  const int error = read_process(
      from.window->pid, local<void>(to.address), remote(*from.window, from.address), bytes);
  return error == 0 ? StepState::done : unreached(*from.window, error);
}

StepState Decoder::push(const Place& to, const void* data, std::uint64_t bytes) {
  if (to.window->pid == 0) {
    copy_local(to.address, reinterpret_cast<std::uint64_t>(data), bytes);
    return StepState::done;
  }
  const int error = write_process(to.window->pid, remote(*to.window, to.address), data, bytes);
  return error == 0 ? StepState::done : unreached(*to.window, error);
}

StepState Decoder::write(const std::uint32_t* dw, std::uint64_t dwords) {
  const std::uint64_t address = join(dw + 1);
  if (dw[3] >= device::kMaxWriteDwords || address % 4 != 0) {
    return bad(fmt::format("WRITE_LINEAR to {:#x} with count {:#010x}", address, dw[3]));
  }
  return write_words(address, dw + 4, dwords);
}

StepState Decoder::write_words(
    std::uint64_t address, const std::uint32_t* words, std::uint64_t dwords) {
  const Window* const window = find(address, dwords * 4, true, destination_hint_);
  if (window == nullptr) return outside("WRITE_LINEAR", " to", address, dwords * 4, true);
  const StepState state = push({window, address}, words, dwords * 4);
  if (state == StepState::done) announce(*window);
  return state;
}

StepState Decoder::fill(const std::uint32_t* dw) {
  const std::uint64_t address = join(dw + 1);
  const std::uint64_t bytes = std::uint64_t{dw[4]} + 1;
  if (bytes > device::kMaxFillBytes || bytes % 4 != 0 || address % 4 != 0 ||
      (dw[0] & 0xc0000000u) != device::kFillDword) {
    return bad(fmt::format("CONST_FILL of {} bytes at {:#x} is not one of dwords", bytes, address));
  }
  return fill_words(address, dw[3], bytes);
}

StepState Decoder::fill_words(std::uint64_t address, std::uint32_t pattern, std::uint64_t bytes) {
  const Window* const window = find(address, bytes, true, destination_hint_);
  if (window == nullptr) return outside("CONST_FILL", " to", address, bytes, true);
  if (window->pid == 0) {
    std::fill_n(local<std::uint32_t>(address), bytes / 4, pattern);
    return StepState::done;
  }
  std::array<std::uint32_t, 1024> block;
  block.fill(pattern);
  StepState state = StepState::done;
  for (std::uint64_t at = 0; at < bytes && state == StepState::done; at += sizeof block) {
    const std::uint64_t length = std::min<std::uint64_t>(sizeof block, bytes - at);
    state = push({window, address + at}, block.data(), length);
  }
  return state;
}

StepState Decoder::fence(const std::uint32_t* dw) {
  const std::uint64_t address = join(dw + 1);
  const Window* const window = word("FENCE", address, 4, true, signal_hint_);
  if (window == nullptr) return StepState::failed;
  device::store_release(local<std::uint32_t>(address), dw[3]);
  announce(*window);
  return StepState::done;
}

// The release makes the copies before this packet visible to whoever acquires the signal.
StepState Decoder::atomic(const std::uint32_t* dw) {
  const std::uint32_t operation = dw[0] >> 25;
  if (operation != device::kAtomicAdd64 && operation != kAtomicAdd64NoReturn) {
    return bad(fmt::format("ATOMIC with operation {}, only 64-bit add is known", operation));
  }
  const std::uint64_t address = join(dw + 1);
  const Window* const window = word("ATOMIC", address, 8, true, signal_hint_);
  if (window == nullptr) return StepState::failed;
  device::fetch_add(local<std::uint64_t>(address), join(dw + 3));
  announce(*window);
  return StepState::done;
}

// Retries are for ever, whatever the packet says: the bound on waiting is the host's.
StepState Decoder::poll(const std::uint32_t* dw) {
  if ((dw[0] & device::kPollMemory) == 0) return bad("POLL_REGMEM of a register");
  const std::uint64_t address = join(dw + 1);
  if (word("POLL_REGMEM", address, 4, false, poll_hint_) == nullptr) return StepState::failed;
  const std::uint32_t value = device::load_acquire(local<std::uint32_t>(address)) & dw[4];
  const StepState state = compare(dw[0] >> 28 & 7, value, dw[3]);
  return state == StepState::failed ? bad("POLL_REGMEM with function 7") : state;
}

StepState Decoder::poll64(const std::uint32_t* dw) {
  return hold64("POLL_MEM_64B", dw[0] >> 28 & 7, join(dw + 1), join(dw + 3), join(dw + 5));
}

StepState Decoder::hold64(
    const char* packet, std::uint32_t function, std::uint64_t address, std::uint64_t reference,
    std::uint64_t mask) {
  if (word(packet, address, 8, false, poll_hint_) == nullptr) return StepState::failed;
  const std::uint64_t value = device::load_acquire(local<std::uint64_t>(address)) & mask;
  const StepState state = compare(function, value, reference);
  return state == StepState::failed ? bad(fmt::format("{} with function 7", packet)) : state;
}

// An interrupt to the host of this queue: it may sleep until its queue comes here.
StepState Decoder::trap() {
  hook_(self_);
  return StepState::done;
}

const Window* Decoder::word(
    const char* packet, std::uint64_t address, std::uint64_t bytes, bool write, std::size_t& hint) {
  if (address % bytes != 0) {
    bad(fmt::format("{} at {:#x} is not aligned to {} bytes", packet, address, bytes));
    return nullptr;
  }
  const Window* const window = find(address, bytes, write, hint);
  if (window == nullptr) {
    outside(packet, "", address, bytes, write);
  } else if (window->pid != 0) {
    bad(fmt::format(
        "{} at {:#x} in window {}: a word of process {}, which this process cannot map", packet,
        address, window->name, window->pid));
    return nullptr;
  }
  return window;
}

StepState Decoder::bad(std::string cause) {
  error_ = Status{ErrorKind::bad_packet, std::move(cause), {}};
  return StepState::failed;
}

StepState Decoder::outside(
    const char* packet, const char* where, std::uint64_t address, std::uint64_t bytes, bool write) {
  return bad(fmt::format(
      "{}{} {:#x} ({} bytes) lies in no {}window", packet, where, address, bytes,
      write ? "writable " : ""));
}

StepState Decoder::unreached(const Window& window, int error) {
  const bool died = error == ESRCH;
  error_ = Status{
      died ? ErrorKind::peer_died : ErrorKind::other,
      fmt::format(
          "window {} of rank {} (process {}): {}", window.name, window.owner, window.pid,
          std::strerror(error)),
      error == EPERM ? "allow cross-memory attach (kernel.yama.ptrace_scope, container seccomp)"
                     : ""};
  return StepState::failed;
}

} // namespace ferry::core
