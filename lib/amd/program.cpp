// SPDX-License-Identifier: MIT
#include "lib/amd/program.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "collectives/planner.hpp"
#include "device/packet_build.hpp"
#include "device/packet_table.hpp"
#include "lib/base/error.hpp"
#include "lib/schedule/lower.hpp"

namespace ferry::amd {
namespace {

using core::Schedule;
using core::SignalKind;
using core::Step;
using core::StepKind;
using device::FieldId;
using device::Generation;
using device::PacketKind;
using device::PacketStatus;

constexpr std::uint32_t kFunctionShift = 28;
constexpr std::uint32_t kFunctionMask = 7u << kFunctionShift;
constexpr std::uint32_t kNotEqual = 4u << kFunctionShift;
constexpr std::uint32_t kAtLeast = 5u << kFunctionShift;
constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;

// Pushed, not pulled: writes over a link between GPUs are faster than reads.
Schedule plan_of(const Job& job, int rank, int ranks) {
  const std::vector<core::BufferFacts> facts(
      static_cast<std::size_t>(ranks), core::BufferFacts{false, true});
  core::PlanInput input;
  input.operation = job.operation;
  input.rank = rank;
  input.ranks = ranks;
  input.root = job.root;
  input.in_place = job.in_place;
  input.block_bytes = job.block_bytes;
  input.facts = facts;
  input.limits.slot_bytes = 0;
  input.own_block = job.own_block;
  std::vector<core::PairPlan> pairs;
  for (const PairBlocks& pair : job.pairs) {
    pairs.push_back({pair.send_bytes, pair.recv_bytes, facts.front(), facts.front()});
  }
  input.pairs = pairs;
  return core::plan_collective(input);
}

Step signal(SignalKind kind, int peer) {
  Step step;
  step.kind = StepKind::signal;
  step.signal = kind;
  step.peer = peer;
  return step;
}

Step await(SignalKind kind, int peer, std::uint64_t ordinal) {
  Step step = signal(kind, peer);
  step.kind = StepKind::await;
  step.ordinal = ordinal;
  return step;
}

// Two words that no peer raises: `ready` from this rank itself is the trigger, `moved` from itself
// counts its rings that have come to their end.
Schedule on_rings_only(Schedule schedule) {
  const int me = schedule.rank;
  const Step trigger = await(SignalKind::ready, me, 1);
  auto& queues = schedule.queues;
  core::StepQueue own{me, std::move(queues.front().steps)};
  for (std::size_t q = 1; q < queues.size(); ++q) {
    queues[q].steps.insert(queues[q].steps.begin(), trigger);
    queues[q].steps.push_back(signal(SignalKind::moved, me));
  }
  own.steps.insert(own.steps.begin(), trigger);
  if (queues.size() > 1) own.steps.push_back(await(SignalKind::moved, me, queues.size() - 1));
  queues.front() = {};
  queues.push_back(std::move(own));
  return schedule;
}

void require(PacketStatus status) {
  if (status == PacketStatus::ok) return;
  throw core::Failure(
      core::ErrorKind::other, "no packet of this GPU can hold a step of the plan",
      "this is a fault of Ferry: please report it");
}

// The packets of a lowered ring, as the engines of one generation take them.
template <Generation G>
class Translator {
 public:
  using Packets = device::Build<G>;

  Translator(const Places& places, std::size_t trigger, std::vector<std::uint64_t> each_epoch)
      : places_(places), trigger_(trigger), each_epoch_(std::move(each_epoch)) {}

  RingProgram ring(const core::RingImage& image) {
    program_ = {};
    program_.peer = image.peer;
    polled_.clear();
    std::size_t next_poll = 0;
    for (std::size_t at = 0; at < image.dwords.size();) {
      const std::uint32_t* const dw = image.dwords.data() + at;
      const device::Packet* const packet = device::find_packet(Generation::software, dw[0]);
      require(packet != nullptr ? PacketStatus::ok : PacketStatus::unsupported);
      if (packet->kind == PacketKind::poll64) {
        poll(*packet, dw, image.polls.at(next_poll++));
      } else {
        other(*packet, dw);
      }
      at += device::packet_dwords(*packet, Generation::software, dw);
    }
    return std::move(program_);
  }

  // Each writes one half of the word; set_epoch() says which.
  void tell_done(RingProgram& program) {
    program_ = std::move(program);
    program_.done = places_.done;
    for (int half = 0; half < 2; ++half) {
      device::FencePacket packet;
      require(Packets::fence(packet, places_.done, 0));
      program_.fences.push_back(static_cast<std::uint32_t>(program_.dwords.size()));
      append(packet);
    }
    program = std::move(program_);
  }

 private:
  static std::uint64_t value(const device::Packet& packet, const std::uint32_t* dw, FieldId id) {
    return device::field_value(device::field_of(packet, Generation::software, id), dw);
  }
  template <class Words>
  void append(const Words& packet) {
    program_.dwords.insert(program_.dwords.end(), std::begin(packet.dw), std::end(packet.dw));
  }

  void other(const device::Packet& packet, const std::uint32_t* dw) {
    if (packet.kind == PacketKind::copy) {
      device::CopyPacket copy;
      require(Packets::copy(
          copy, value(packet, dw, FieldId::destination), value(packet, dw, FieldId::source),
          value(packet, dw, FieldId::bytes)));
      return append(copy);
    }
    require(packet.kind == PacketKind::atomic ? PacketStatus::ok : PacketStatus::unsupported);
    device::AtomicPacket atomic;
    require(Packets::atomic(
        atomic, device::AtomicOperation::add, 8, true, value(packet, dw, FieldId::word),
        value(packet, dw, FieldId::value)));
    append(atomic);
  }

  // Where only 32 bits are compared, a value that is passed over is polled for as well: see
  // set_epoch().
  void poll(const device::Packet& packet, const std::uint32_t* dw, const core::PollPatch& patch) {
    constexpr bool kWide = device::detail::kHasPacket<G, PacketKind::poll64>;
    constexpr std::uint32_t kReference = 3;
    const std::uint64_t word =
        patch.word == trigger_ ? places_.trigger : value(packet, dw, FieldId::word);
    std::uint64_t& before = polled_[patch.word];
    for (std::uint64_t n = kWide ? patch.ordinal : before + 1; n <= patch.ordinal; ++n) {
      const auto header = static_cast<std::uint32_t>(program_.dwords.size());
      program_.polls.push_back({header, header + kReference, n, each_epoch_[patch.word]});
      if constexpr (kWide) {
        device::Poll64Packet poll;
        require(Packets::poll64(poll, word, n));
        append(poll);
      } else {
        device::PollPacket poll;
        require(Packets::poll(poll, word, static_cast<std::uint32_t>(n)));
        append(poll);
      }
    }
    before = std::max(before, patch.ordinal);
  }

  const Places& places_;
  std::size_t trigger_;
  std::vector<std::uint64_t> each_epoch_; // signals of each word
  std::map<std::size_t, std::uint64_t> polled_; // highest ordinal of each word in this ring
  RingProgram program_;
};

template <Generation G>
std::vector<RingProgram> translate(
    const core::Program& program, const Places& places, std::size_t trigger,
    const std::vector<std::uint64_t>& each_epoch) {
  Translator<G> translator(places, trigger, each_epoch);
  std::vector<RingProgram> rings;
  for (const core::RingImage& image : program.rings) rings.push_back(translator.ring(image));
  translator.tell_done(rings.back());
  return rings;
}

Schedule schedule_of(const JobPlan& plan) {
  return on_rings_only(plan_of(plan.job(), plan.rank(), plan.ranks()));
}

core::AddressBook book_of(const JobPlan& plan, const Places& places) {
  core::AddressBook book;
  book.rank = plan.rank();
  const std::uint64_t block = plan.job().block_bytes;
  for (const RankPlaces& at : places.ranks) {
    book.ranks.push_back({at.send, at.recv, block, block, at.stage, at.signals});
  }
  for (const PairBlocks& pair : plan.job().pairs) {
    book.send.push_back(
        {places.own_send + pair.send_at, core::contiguous_layout(pair.send_bytes, 1)});
    book.recv.push_back(
        {places.own_recv + pair.recv_at, core::contiguous_layout(pair.recv_bytes, 1)});
  }
  return book;
}

// The low half is written last: who sees the end may free the memory, so nothing may land behind
// it. Where the high half changes it is that one, and what is read in between is less than before.
void tell_end(const RingProgram& program, std::uint64_t number, std::uint32_t* dwords) {
  const bool carries = number / kHalf != (number - 1) / kHalf;
  for (std::size_t i = 0; i < program.fences.size(); ++i) {
    const std::uint64_t half = (i == 0) == carries ? 0 : 1;
    const std::uint64_t address = program.done + 4 * half;
    std::uint32_t* const fence = dwords + program.fences[i];
    fence[1] = static_cast<std::uint32_t>(address);
    fence[2] = static_cast<std::uint32_t>(address / kHalf);
    fence[3] = static_cast<std::uint32_t>(half == 0 ? number : number / kHalf);
  }
}

bool compares_wide(Generation generation) {
  return device::contains(device::packet_of(PacketKind::poll64).generations, generation);
}

} // namespace

Job job_of(const core::CollectiveDesc& desc, int rank) {
  Job job;
  job.operation = desc.operation;
  job.in_place = desc.in_place;
  job.root = desc.root;
  job.own_block = desc.own_block;
  if (desc.irregular != nullptr) {
    job.pairs = unequal_blocks(desc, rank).pairs;
    return job;
  }
  constexpr core::Operation kKnown[] = {
      core::Operation::alltoall, core::Operation::allgather, core::Operation::broadcast};
  const bool known =
      std::find(std::begin(kKnown), std::end(kKnown), desc.operation) != std::end(kKnown);
  if (!known) {
    throw core::Failure(
        core::ErrorKind::argument,
        fmt::format("{} of memory of a GPU", core::name_of(desc.operation)),
        "copy to memory of the host");
  }
  if (!desc.send_plain() || !desc.recv_plain()) {
    throw core::Failure(
        core::ErrorKind::type, "blocks with gaps in memory of a GPU",
        "pack them, or use blocks without gaps");
  }
  job.block_bytes = desc.block_bytes();
  return job;
}

Buffers buffers_of(const core::CollectiveDesc& desc, int rank, int ranks) {
  if (desc.irregular != nullptr) return unequal_blocks(desc, rank).buffers;
  const std::uint64_t block = desc.block_bytes();
  const std::uint64_t all = block * static_cast<std::uint64_t>(ranks);
  Buffers buffers{desc.send_start(), block, desc.recv_start(), all};
  if (desc.operation == core::Operation::alltoall) buffers.send_bytes = all;
  if (desc.operation == core::Operation::broadcast) {
    buffers.send_bytes = rank == desc.root ? block : 0;
    buffers.recv_bytes = rank == desc.root ? 0 : block;
  }
  if (desc.in_place && desc.operation != core::Operation::broadcast) {
    buffers.send = nullptr;
    buffers.send_bytes = 0;
  }
  if (buffers.send_bytes == 0) buffers.send = nullptr;
  if (buffers.recv_bytes == 0) buffers.recv = nullptr;
  return buffers;
}

JobPlan::JobPlan(const Job& job, int rank, int ranks) : job_(job), rank_(rank), ranks_(ranks) {}

std::uint64_t JobPlan::stage_bytes() const {
  return plan_of(job_, rank_, ranks_).stage_bytes;
}

std::uint64_t JobPlan::signal_bytes() const {
  return static_cast<std::uint64_t>(core::kSignalWords * ranks_) * core::kSignalStride;
}

std::vector<int> JobPlan::ring_peers() const {
  const Schedule schedule = schedule_of(*this);
  std::vector<int> peers;
  for (std::size_t q = 1; q < schedule.queues.size(); ++q) {
    peers.push_back(schedule.queues[q].peer);
  }
  return peers;
}

std::vector<RingProgram> make_program(
    const JobPlan& plan, const Places& places, Generation generation,
    std::uint64_t max_packet_bytes) {
  const Schedule schedule = schedule_of(plan);
  const core::Program program = core::lower(schedule, book_of(plan, places), max_packet_bytes);
  std::vector<std::uint64_t> each_epoch = schedule.arrivals();
  const std::size_t trigger = core::signal_index(SignalKind::ready, plan.ranks(), plan.rank());
  each_epoch[trigger] = 1;
  switch (generation) {
    case Generation::gfx90a:
      return translate<Generation::gfx90a>(program, places, trigger, each_epoch);
    case Generation::gfx942:
      return translate<Generation::gfx942>(program, places, trigger, each_epoch);
    case Generation::gfx950:
      return translate<Generation::gfx950>(program, places, trigger, each_epoch);
    case Generation::gfx1250:
      return translate<Generation::gfx1250>(program, places, trigger, each_epoch);
    case Generation::software:
      break;
  }
  return translate<Generation::software>(program, places, trigger, each_epoch);
}

void set_epoch(
    const RingProgram& program, Generation generation, std::uint64_t first, std::uint64_t epoch,
    std::uint32_t* dwords) {
  const bool wide = compares_wide(generation);
  for (const PollSpot& poll : program.polls) {
    const std::uint64_t base = first + (epoch - 1) * poll.each_epoch;
    const std::uint64_t reference = base + poll.ordinal;
    if (wide) {
      dwords[poll.reference] = static_cast<std::uint32_t>(reference);
      dwords[poll.reference + 1] = static_cast<std::uint32_t>(reference >> 32);
      continue;
    }
    const bool wraps = base / kHalf != (base + 2 * poll.each_epoch) / kHalf;
    const std::uint32_t function = wraps ? kNotEqual : kAtLeast;
    dwords[poll.header] = (dwords[poll.header] & ~kFunctionMask) | function;
    dwords[poll.reference] = static_cast<std::uint32_t>(wraps ? reference - 1 : reference);
  }
  tell_end(program, first + epoch, dwords);
}

} // namespace ferry::amd
