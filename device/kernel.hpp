// SPDX-License-Identifier: MIT
#pragma once

// What the kernels of the compute path share. A kernel is one start of a persistent exchange. Its
// arguments never change: which start it is stands in memory that the kernels themselves advance,
// so that a captured launch can be replayed. Nothing is ever reset; starts follow each other on one
// stream.

#include <cstdint>

#include "platform.hpp"
#include "put.hpp"
#include "scope.hpp"

namespace ferry::device {

inline constexpr std::uint32_t kKernelVersion = 1;

// Memory of this rank's device, zero before the first start.
struct KernelProgress {
  std::uint64_t epoch = 0; // starts that have ended
  std::uint64_t finished = 0; // workgroups that have ended, of all starts
};

// Memory of the host. The first failure stays; any may be the first.
struct KernelReport {
  std::uint64_t status = 0; // PutStatus
  std::uint64_t peer = 0; // index in the table of peers
  std::uint64_t epoch = 0;
  std::uint64_t stop = 0; // the host's: waits are to give up; backoffs look at it
};

// A block of this rank's own, that moves without a peer.
struct OwnBlock {
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
};

namespace detail {

// All lanes read it before any of them meets the others in end_of_start().
FERRY_DEVICE_FN std::uint64_t epoch_of_start(const KernelProgress* progress) {
  return load_relaxed(&progress->epoch) + 1;
}

// The last workgroup counts the start; then all have read the epoch. The end of a kernel orders
// this before the next one.
template <class Scope>
FERRY_DEVICE_FN void end_of_start(
    KernelProgress* progress, std::uint64_t epoch, const Place& place, const Scope& scope) {
  scope.join();
  if (!scope.is_leader()) return;
  const std::uint64_t ended = fetch_add_relaxed(&progress->finished, std::uint64_t{1}) + 1;
  if (ended == epoch * place.blocks) store_relaxed(&progress->epoch, epoch);
}

FERRY_DEVICE_FN void report_failure(
    KernelReport* report, PutStatus status, std::uint64_t peer, std::uint64_t epoch) {
  if (status == PutStatus::done || load_relaxed(&report->status) != 0) return;
  store_relaxed(&report->peer, peer);
  store_relaxed(&report->epoch, epoch);
  store_release(&report->status, static_cast<std::uint64_t>(status));
}

// The part of `bytes` that falls to one of several: multiples of 16, except the last.
struct Slice {
  std::uint64_t begin;
  std::uint64_t bytes;
};

FERRY_DEVICE_FN Slice slice_of(std::uint64_t bytes, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t units = (bytes + sizeof(Vec16) - 1) / sizeof(Vec16);
  const std::uint64_t most = (units + parts - 1) / parts * sizeof(Vec16);
  const std::uint64_t begin = index * most < bytes ? index * most : bytes;
  const std::uint64_t left = bytes - begin;
  return {begin, left < most ? left : most};
}

} // namespace detail

} // namespace ferry::device
