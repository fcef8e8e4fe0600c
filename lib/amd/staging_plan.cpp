// SPDX-License-Identifier: MIT
#include "lib/amd/staging_plan.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "device/platform.hpp"
#include "lib/amd/patience.hpp"
#include "lib/config/config.hpp"

namespace ferry::amd {
namespace {

using core::Operation;

constexpr std::uint64_t kDepth = 2; // chunks in turn
constexpr std::uint64_t kLine = 64;

// First the counter of rounds that were filled, then for each reader the one that were drained.
std::uint64_t header_bytes(int ranks) {
  return (static_cast<std::uint64_t>(ranks) + 1) * kLine;
}

} // namespace

StagingPlan::StagingPlan(
    const Runtime& runtime, core::DeviceTeam& team, const JobPlan& job, const Buffers& buffers,
    std::uint64_t chunk_bytes, std::string why)
    : runtime_(runtime),
      team_(team),
      job_(job.job()),
      me_(job.rank()),
      ranks_(job.ranks()),
      buffers_(buffers),
      chunk_(std::clamp(job_.block_bytes, kLine, chunk_bytes)),
      rounds_((job_.block_bytes + chunk_ - 1) / chunk_),
      got_(static_cast<std::size_t>(ranks_)),
      why_("staging: " + std::move(why)) {
  const std::uint64_t readers =
      job_.operation == Operation::alltoall ? static_cast<std::uint64_t>(ranks_) : 1;
  team_.share(header_bytes(ranks_) + kDepth * readers * chunk_);
}

bool StagingPlan::sends(int rank) const {
  return job_.operation != Operation::broadcast || rank == job_.root;
}

std::uint64_t* StagingPlan::filled(int writer) const {
  return reinterpret_cast<std::uint64_t*>(team_.block(writer));
}

std::uint64_t* StagingPlan::drained(int writer, int reader) const {
  return filled(writer) + (static_cast<std::uint64_t>(reader) + 1) * kLine / 8;
}

std::byte* StagingPlan::chunk(int writer, int reader, std::uint64_t round) const {
  const std::uint64_t place =
      job_.operation == Operation::alltoall ? static_cast<std::uint64_t>(reader) * kDepth : 0;
  return team_.block(writer) + header_bytes(ranks_) + (place + round % kDepth) * chunk_;
}

std::uint64_t StagingPlan::length(std::uint64_t round) const {
  return std::min(chunk_, job_.block_bytes - round * chunk_);
}

void StagingPlan::start() {
  if (!status_.ok()) return;
  ++epoch_;
  written_ = sends(me_) ? 0 : rounds_;
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool nothing = rank == me_ || !sends(rank);
    got_[static_cast<std::size_t>(rank)] = nothing ? rounds_ : 0;
  }
  running_ = true;
}

bool StagingPlan::may_write() const {
  const std::uint64_t round = base_ + written_;
  if (written_ == rounds_) return false;
  for (int reader = 0; reader < ranks_; ++reader) {
    // Pairs with the release in read_round(): the chunk was read before it is written again.
    const bool waits = reader != me_ && round >= kDepth &&
                       device::load_acquire(drained(me_, reader)) < round - (kDepth - 1);
    if (waits) return false;
  }
  return true;
}

void StagingPlan::write_round() {
  const std::uint64_t round = base_ + written_;
  const std::uint64_t skip = written_ * chunk_;
  const auto* const source =
      static_cast<const std::byte*>(job_.in_place ? buffers_.recv : buffers_.send);
  const bool each = job_.operation == Operation::alltoall;
  const bool own = job_.operation == Operation::allgather && job_.in_place;
  for (int reader = 0; reader < (each ? ranks_ : 1); ++reader) {
    if (each && reader == me_) continue;
    const int block = each ? reader : own ? me_ : 0;
    runtime_.copy(
        chunk(me_, reader, round),
        source + static_cast<std::uint64_t>(block) * job_.block_bytes + skip, length(written_));
  }
  ++written_;
  // Pairs with the acquire in read_round().
  device::store_release(filled(me_), base_ + written_);
}

bool StagingPlan::read_round(int writer) {
  std::uint64_t& got = got_[static_cast<std::size_t>(writer)];
  if (got == rounds_ || device::load_acquire(filled(writer)) <= base_ + got) return false;
  // In place, the block that arrives takes the place of one that must be on its way.
  if (job_.in_place && written_ <= got) return false;
  const bool one = job_.operation == Operation::broadcast;
  const std::uint64_t block = one ? 0 : static_cast<std::uint64_t>(writer) * job_.block_bytes;
  runtime_.copy(
      static_cast<std::byte*>(buffers_.recv) + block + got * chunk_,
      chunk(writer, me_, base_ + got), length(got));
  ++got;
  device::store_release(drained(writer, me_), base_ + got);
  return true;
}

void StagingPlan::copy_own() {
  if (job_.in_place || job_.operation == Operation::broadcast) return;
  const std::uint64_t at = static_cast<std::uint64_t>(me_) * job_.block_bytes;
  const auto* const from = static_cast<const std::byte*>(buffers_.send);
  const bool each = job_.operation == Operation::alltoall;
  runtime_.copy(
      static_cast<std::byte*>(buffers_.recv) + at, from + (each ? at : 0), job_.block_bytes);
}

void StagingPlan::move() {
  if (may_write()) write_round();
  for (int i = 1; i < ranks_; ++i) read_round((me_ + i) % ranks_);
  const bool all = std::all_of(got_.begin(), got_.end(), [&](auto got) { return got == rounds_; });
  if (!all || written_ != rounds_) return;
  copy_own();
  base_ += rounds_;
  running_ = false;
}

core::Poll StagingPlan::progress() {
  if (!running_ || !status_.ok()) return core::Poll::ready;
  try {
    move();
  } catch (const core::Failure& failure) {
    status_ = failure.status();
  }
  return running_ && status_.ok() ? core::Poll::pending : core::Poll::ready;
}

void StagingPlan::start_on_stream(void* stream) {
  runtime_.call_on_stream(stream, &StagingPlan::run_on_stream, this);
}

void StagingPlan::run_on_stream(void* self) {
  auto& plan = *static_cast<StagingPlan*>(self);
  plan.start();
  const auto what = [&plan] { return plan.missing(); };
  const auto look = [&plan] { return plan.progress(); };
  const core::Status status = wait_patiently(what, core::config().timeout, look);
  if (!status.ok()) plan.status_ = status;
}

std::string StagingPlan::missing() const {
  const std::string label = fmt::format(
      "persistent {} on {}, start {}", core::name_of(job_.operation), team_.name(), epoch_);
  for (int writer = 0; writer < ranks_; ++writer) {
    const std::uint64_t got = got_[static_cast<std::size_t>(writer)];
    if (got == rounds_) continue;
    return fmt::format(
        "{}: waits for chunk {} of {} from rank {}", label, got + 1, rounds_, writer);
  }
  return fmt::format("{}: {} of {} chunks are sent", label, written_, rounds_);
}

} // namespace ferry::amd
