// SPDX-License-Identifier: MIT
#include "lib/exec/slot_channel.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "collectives/table.hpp"
#include "device/platform.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kLine = 64;

} // namespace

SlotProgram lower_slots(const Schedule& schedule, std::uint8_t call_bits, int root) {
  SlotProgram program;
  program.operation = schedule.operation;
  program.in_place = call_bits;
  program.root = static_cast<std::uint16_t>(root);
  const bool paired = schedule.operation == Operation::alltoall || schedule.irregular;
  const auto move = [&](int peer, const Place& place, std::uint64_t bytes) {
    return SlotProgram::Move{
        peer,
        place.block,
        place.buffer == Buffer::recv,
        !paired,
        static_cast<std::uint32_t>(bytes),
        static_cast<std::uint64_t>(place.block) * schedule.slot_bytes};
  };
  const auto& steps = schedule.queues.front().steps;
  Step filled; // the copy into the slot whose flag comes next
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.kind == StepKind::copy && step.to.buffer == Buffer::slot) {
      filled = step;
    } else if (step.kind == StepKind::copy && step.from.buffer != Buffer::slot) {
      program.copy_own = schedule.path == Path::slots;
    } else if (step.kind == StepKind::signal && step.signal == SignalKind::slot) {
      program.puts.push_back(move(step.peer, filled.from, filled.bytes));
    } else if (step.kind == StepKind::await && step.signal == SignalKind::slot) {
      const bool data = i + 1 < steps.size() && steps[i + 1].from.buffer == Buffer::slot;
      const Step none;
      const Step& get = data ? steps[i + 1] : none;
      program.gets.push_back(move(step.peer, get.to, get.bytes));
    }
  }
  return program;
}

SlotChannel::SlotChannel(Team& team, BlockLayout layout, std::vector<std::byte*> blocks)
    : team_(team),
      layout_(layout),
      blocks_(std::move(blocks)),
      known_done_(static_cast<std::size_t>(layout.ranks)),
      demote_bytes_(table().demote_bytes),
      demote_ahead_bytes_(table().demote_ahead_bytes) {}

bool SlotChannel::completed(int rank, std::uint64_t sequence) {
  auto& known = known_done_[static_cast<std::size_t>(rank)];
  if (known >= sequence) return true;
  // Pairs with the release in complete(): the reader's loads from the slot came before.
  known = header_of(block(rank)).done.load(std::memory_order_acquire);
  return known >= sequence;
}

bool SlotChannel::has_read(int rank, std::uint64_t sequence) {
  auto& known = known_done_[static_cast<std::size_t>(rank)];
  if (known >= sequence) return true;
  // Pairs with the release in complete(): the reader's loads from the slot came before.
  known = std::max(known, header_of(block(rank)).credit.load(std::memory_order_acquire));
  return known >= sequence;
}

bool SlotChannel::may_put(int reader, std::uint64_t sequence) {
  const auto depth = static_cast<std::uint64_t>(layout_.slot_depth);
  if (sequence <= depth) return true;
  if (reader != kEveryone) return has_read(reader, sequence - depth);
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (rank != team_.rank() && !has_read(rank, sequence - depth)) return false;
  }
  return true;
}

void SlotChannel::publish(
    const SlotProgram& program, const SlotProgram::Move& move, std::uint64_t sequence,
    bool mapped) {
  const bool shared = move.peer == kEveryone;
  auto& header = *reinterpret_cast<SlotHeader*>(own_slot(move, sequence));
  header.bytes = move.bytes;
  header.root = program.root;
  header.operation = static_cast<std::uint8_t>(program.operation);
  header.in_place =
      static_cast<std::uint8_t>(program.in_place | (mapped ? kMappedBit : std::uint8_t{0}));
  // Pairs with the acquire in look().
  header.sequence.store(sequence, std::memory_order_release);
  const auto* slot = reinterpret_cast<const std::byte*>(&header);
  const bool ahead = program.operation == Operation::broadcast;
  const bool demote = move.bytes <= (ahead ? demote_ahead_bytes_ : demote_bytes_);
  for (std::uint64_t at = 0; demote && at < sizeof(SlotHeader) + move.bytes; at += kLine) {
    device::demote_line(slot + at);
  }
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

void SlotChannel::prepare(const SlotProgram::Move& move, std::uint64_t sequence) {
  const std::byte* slot = own_slot(move, sequence);
  const std::uint64_t end = sizeof(SlotHeader) + move.bytes;
  for (std::uint64_t at = 0; at < end; at += kLine) device::prefetch_for_write(slot + at);
}

// A credit comes at least depth / 2 operations before the writer can do nothing without it.
void SlotChannel::complete(std::uint64_t sequence) {
  BlockHeader& header = header_of(block(team_.rank()));
  header.done.store(sequence, std::memory_order_release);
  const auto step = static_cast<std::uint64_t>(layout_.slot_depth) / 2;
  if ((sequence & (step - 1)) == 0) header.credit.store(sequence, std::memory_order_release);
}

void SlotRun::begin(
    const SlotProgram& program, std::uint64_t sequence, const CollectiveDesc& desc, bool mapped) {
  program_ = &program;
  desc_ = &desc;
  sequence_ = sequence;
  send_ = desc.send_plain() ? desc.send_start() : nullptr;
  recv_ = desc.recv_plain() ? desc.recv_start() : nullptr;
  mapped_ = mapped;
  theirs_mapped_ = true;
  copied_ = false;
  next_put_ = 0;
  next_get_ = 0;
  if (!status_.ok()) status_ = {};
}

namespace {

// The line of the flag comes last: a reader that looks at it takes it from the writer.
void copy_flag_line_last(std::byte* payload, const std::byte* from, std::uint64_t bytes) {
  constexpr std::uint64_t kFirst = kLine - sizeof(SlotHeader);
  if (bytes > kFirst) std::memcpy(payload + kFirst, from + kFirst, bytes - kFirst);
  std::memcpy(payload, from, std::min(bytes, kFirst));
}

} // namespace

void SlotRun::fill(const SlotProgram::Move& move, std::byte* payload) const {
  if (move.bytes == 0) return;
  if (const std::byte* plain = move.in_recv ? recv_ : send_; plain != nullptr) {
    copy_flag_line_last(payload, plain + move.offset, move.bytes);
    return;
  }
  const Layout& layout =
      move.in_recv ? desc_->recv_block(move.block) : desc_->send_block(move.block);
  const std::byte* base =
      move.in_recv ? desc_->recv_base(move.block) : desc_->send_base(move.block);
  if (layout.contiguous()) {
    std::memcpy(payload, base + layout.offset, move.bytes);
  } else {
    pack(layout, base, 0, move.bytes, payload);
  }
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
    fill(move, channel.payload(move, sequence_));
    channel.publish(*program_, move, sequence_, mapped_);
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
  theirs_mapped_ = theirs_mapped_ && (slot.in_place & kMappedBit) != 0;
  if (slot.bytes != move.bytes || slot.operation != operation || slot.root != program_->root ||
      (slot.in_place & ~kMappedBit) != program_->in_place) {
    const CallShape theirs{
        static_cast<Operation>(slot.operation), (slot.in_place & kInPlaceBit) != 0, slot.bytes,
        slot.root};
    const CallShape ours{
        program_->operation, (program_->in_place & kInPlaceBit) != 0, move.bytes, program_->root};
    if (status_.ok()) status_ = mismatch(move.peer, theirs, ours);
    return;
  }
  if (move.bytes == 0) return;
  const auto* data = reinterpret_cast<const std::byte*>(&slot) + sizeof(SlotHeader);
  if (recv_ != nullptr) {
    std::memcpy(recv_ + move.offset, data, move.bytes);
    return;
  }
  const Layout& layout = desc_->recv_block(move.block);
  std::byte* base = desc_->recv_base(move.block);
  if (layout.contiguous()) {
    std::memcpy(base + layout.offset, data, move.bytes);
  } else {
    unpack(layout, base, 0, move.bytes, data);
  }
}

Poll SlotRun::progress(SlotChannel& channel) {
  if (next_put_ < puts() || !copied_) {
    if (!put_all(channel)) return Poll::pending;
    copied_ = true;
    if (program_->copy_own) desc_->copy_own_block(channel.team().rank());
  }
  if (!get_all(channel)) return Poll::pending;
  for (const auto& move : program_->puts) channel.prepare(move, sequence_ + 1);
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
