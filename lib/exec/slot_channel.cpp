// SPDX-License-Identifier: MIT
#include "lib/exec/slot_channel.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "device/platform.hpp"

namespace ferry::core {

SlotProgram lower_slots(const Schedule& schedule, bool in_place, int root) {
  SlotProgram program;
  program.operation = schedule.operation;
  program.in_place = in_place ? 1 : 0;
  program.root = static_cast<std::uint16_t>(root);
  program.bytes = schedule.slot_bytes;
  const auto& steps = schedule.queues.front().steps;
  std::uint64_t put_offset = 0;
  bool put_in_recv = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.kind == StepKind::copy && step.to.buffer == Buffer::slot) {
      put_offset = step.from.offset;
      put_in_recv = step.from.buffer == Buffer::recv;
    } else if (step.kind == StepKind::signal) {
      program.puts.push_back({step.peer, put_in_recv, false, put_offset});
    } else if (step.kind == StepKind::await) {
      SlotProgram::Move get{step.peer, true, schedule.operation != Operation::alltoall, 0};
      if (program.bytes > 0) get.offset = steps[i + 1].to.offset;
      program.gets.push_back(get);
    } else if (step.from.buffer != Buffer::slot) {
      program.copy_own = true;
      program.own_from = step.from.offset;
      program.own_to = step.to.offset;
    }
  }
  return program;
}

SlotChannel::SlotChannel(Team& team, BlockLayout layout, std::vector<std::byte*> blocks)
    : team_(team),
      layout_(layout),
      blocks_(std::move(blocks)),
      known_done_(static_cast<std::size_t>(layout.ranks)) {}

bool SlotChannel::completed(int rank, std::uint64_t sequence) {
  auto& known = known_done_[static_cast<std::size_t>(rank)];
  if (known >= sequence) return true;
  // Pairs with the release in complete(): the reader's loads from the slot came before.
  known = header_of(block(rank)).done.load(std::memory_order_acquire);
  return known >= sequence;
}

bool SlotChannel::may_put(int reader, std::uint64_t sequence) {
  const auto depth = static_cast<std::uint64_t>(layout_.slot_depth);
  if (sequence <= depth) return true;
  if (reader != kEveryone) return completed(reader, sequence - depth);
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (rank != team_.rank() && !completed(rank, sequence - depth)) return false;
  }
  return true;
}

void SlotChannel::put(
    const SlotProgram& program, const SlotProgram::Move& move, std::uint64_t sequence,
    const std::byte* data) {
  const bool shared = move.peer == kEveryone;
  std::byte* slot = own_slot(move, sequence);
  auto& header = *reinterpret_cast<SlotHeader*>(slot);
  if (program.bytes > 0) std::memcpy(slot + sizeof(SlotHeader), data, program.bytes);
  header.bytes = static_cast<std::uint32_t>(program.bytes);
  header.root = program.root;
  header.operation = static_cast<std::uint8_t>(program.operation);
  header.in_place = program.in_place;
  // Pairs with the acquire in look().
  header.sequence.store(sequence, std::memory_order_release);
  if (!shared) {
    team_.wake_rank(move.peer, true);
    return;
  }
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (rank != team_.rank()) team_.wake_rank(rank, true);
  }
}

const SlotHeader& SlotChannel::incoming(
    const SlotProgram::Move& move, std::uint64_t sequence) const {
  const int index = move.shared ? shared_index(move.peer) : team_.rank();
  return *reinterpret_cast<const SlotHeader*>(layout_.slot(block(move.peer), sequence, index));
}

bool SlotChannel::filled(const SlotProgram::Move& move, std::uint64_t sequence) const {
  return incoming(move, sequence).sequence.load(std::memory_order_acquire) >= sequence;
}

const SlotHeader* SlotChannel::look(const SlotProgram::Move& move, std::uint64_t sequence) {
  const SlotHeader& slot = incoming(move, sequence);
  if (slot.sequence.load(std::memory_order_acquire) < sequence) return nullptr;
  note_done(move.peer, sequence - 1);
  return &slot;
}

void SlotChannel::prepare(
    const SlotProgram& program, const SlotProgram::Move& move, std::uint64_t sequence) {
  constexpr std::uint64_t kLine = 64;
  constexpr std::uint64_t kLines = 4; // further ones come by the hardware's own prefetch
  const std::byte* slot = own_slot(move, sequence);
  const std::uint64_t end = std::min(sizeof(SlotHeader) + program.bytes, kLines * kLine);
  for (std::uint64_t at = 0; at < end; at += kLine) device::prefetch_for_write(slot + at);
}

void SlotChannel::complete(std::uint64_t sequence) {
  header_of(block(team_.rank())).done.store(sequence, std::memory_order_release);
}

void SlotRun::begin(
    const SlotProgram& program, std::uint64_t sequence, const void* send, void* recv) {
  program_ = &program;
  sequence_ = sequence;
  send_ = static_cast<const std::byte*>(send);
  recv_ = static_cast<std::byte*>(recv);
  next_put_ = 0;
  next_get_ = 0;
  if (!status_.ok()) status_ = {};
}

bool SlotRun::has_arrived(const SlotChannel& channel) const {
  return next_get_ == program_->gets.size() || channel.filled(program_->gets[next_get_], sequence_);
}

int SlotRun::waits_for() const {
  return blocked_on_;
}

bool SlotRun::put_all(SlotChannel& channel) {
  for (; next_put_ < puts(); ++next_put_) {
    const auto& move = program_->puts[next_put_];
    if (!channel.may_put(move.peer, sequence_)) {
      blocked_on_ = move.peer;
      return false;
    }
    channel.put(*program_, move, sequence_, (move.in_recv ? recv_ : send_) + move.offset);
  }
  return true;
}

bool SlotRun::get_all(SlotChannel& channel) {
  for (; next_get_ < program_->gets.size(); ++next_get_) {
    const auto& move = program_->gets[next_get_];
    const SlotHeader* slot = channel.look(move, sequence_);
    if (slot == nullptr) {
      blocked_on_ = move.peer;
      return false;
    }
    take(move, *slot);
  }
  return true;
}

// A slot that does not fit is not copied; the operation goes on, so that peers are served and the
// communicator stays usable, and then reports the first misfit.
void SlotRun::take(const SlotProgram::Move& move, const SlotHeader& slot) {
  const auto operation = static_cast<std::uint8_t>(program_->operation);
  if (slot.bytes != program_->bytes || slot.operation != operation || slot.root != program_->root ||
      slot.in_place != program_->in_place) {
    const CallShape theirs{
        static_cast<Operation>(slot.operation), slot.in_place != 0, slot.bytes, slot.root};
    const CallShape ours{
        program_->operation, program_->in_place != 0, program_->bytes, program_->root};
    if (status_.ok()) status_ = mismatch(move.peer, theirs, ours);
    return;
  }
  if (program_->bytes == 0) return;
  const auto* data = reinterpret_cast<const std::byte*>(&slot) + sizeof(SlotHeader);
  std::memcpy(recv_ + move.offset, data, program_->bytes);
}

Poll SlotRun::progress(SlotChannel& channel) {
  if (next_put_ < puts()) {
    if (!put_all(channel)) return Poll::pending;
    if (program_->copy_own && program_->bytes > 0 &&
        send_ + program_->own_from != recv_ + program_->own_to) {
      std::memcpy(recv_ + program_->own_to, send_ + program_->own_from, program_->bytes);
    }
  }
  if (!get_all(channel)) return Poll::pending;
  channel.complete(sequence_);
  for (const auto& move : program_->puts) channel.prepare(*program_, move, sequence_ + 1);
  return Poll::ready;
}

namespace {

std::string describe(const CallShape& call) {
  std::string text = fmt::format("{} of {} bytes a block", name_of(call.operation), call.bytes);
  if (call.in_place) text += " in place";
  if (call.operation == Operation::broadcast) text += fmt::format(" from root {}", call.root);
  return text;
}

} // namespace

Status mismatch(int rank, const CallShape& theirs, const CallShape& ours) {
  return {
      ErrorKind::mismatch,
      fmt::format("rank {} calls {}, this rank {}", rank, describe(theirs), describe(ours)),
      "make the same call with matching counts and types on every rank"};
}

} // namespace ferry::core
