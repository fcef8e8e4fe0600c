// SPDX-License-Identifier: MIT
#include "lib/amd/sdma_setup.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "lib/amd/exchange.hpp"
#include "lib/amd/probe.hpp"

namespace ferry::amd {
namespace {

using core::Failure;
using core::Status;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostQueues = kPage / sizeof(std::uint64_t); // marks of a page
// Queues whose trial failed are replaced on other engines, so many times.
constexpr int kTrials = 4;

// A buffer of a rank: where it begins in the allocation that holds it.
struct SharedBuffer {
  SharedAllocation allocation;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0; // 0: there is none
};

struct Card {
  SharedBuffer send;
  SharedBuffer recv;
  SharedBuffer own; // stage and signals, made for this plan
  SharedBuffer arena;
};

// Memory of a GPU that goes with the plan.
class OwnMemory {
 public:
  OwnMemory(const Runtime& runtime, int node, std::size_t bytes)
      : base_(runtime.allocate(node, bytes, MemoryKind::uncached), [&runtime](std::byte* at) {
          runtime.release(at);
        }) {}
  [[nodiscard]] const Mapping& mapping() const { return base_; }

 private:
  Mapping base_;
};

class SetUp {
 public:
  explicit SetUp(const SetUpInput& input)
      : in_(input),
        me_(static_cast<std::size_t>(input.team.rank())),
        hardware_(input.source.provider->in_hardware()),
        generation_(input.source.provider->packets(gpu())),
        max_packet_(std::min(
            input.options.max_packet_bytes, device::generation_info(generation_).max_copy_bytes)) {}

  SetUp(const SetUp&) = delete;
  SetUp& operator=(const SetUp&) = delete;
  ~SetUp() { // all ranks have agreed on how far it went
    for (const SharedBuffer* buffer : {&card_.send, &card_.recv}) {
      in_.devices.cache.withdraw(buffer->allocation);
    }
  }

  SetUpResult run();

 private:
  [[nodiscard]] const Gpu& gpu() const { return in_.devices.gpu(in_.nodes[me_]); }
  // Of the words, which have their place before the stage: stages differ in size from rank to rank.
  [[nodiscard]] std::size_t signal_bytes() const {
    const std::size_t bytes = in_.job.signal_bytes() + probe_word_bytes(in_.job.ranks());
    return (bytes + kPage - 1) / kPage * kPage;
  }
  // Signal words, where the host reads and raises them.
  [[nodiscard]] std::byte* host_words(int rank) const {
    return in_.team.block(rank) + kFaultBoardBytes;
  }
  EngineChoice choose(int peer) const;
  void lease();
  void make_memory();
  SharedBuffer share(const void* buffer, std::uint64_t bytes);
  std::byte* open(const SharedBuffer& buffer, std::vector<Mapping>& mappings);
  void open_all();
  void find_blocks();
  Status probe();
  SdmaParts assemble();
  std::string explain() const;

  const SetUpInput& in_;
  const std::size_t me_;
  const bool hardware_;
  const device::Generation generation_;
  const std::uint64_t max_packet_;
  std::vector<int> peers_;
  ControlPage control_;
  std::shared_ptr<std::uint64_t> marks_;
  std::vector<Mapping> mappings_;
  std::vector<Mapping> arena_mappings_;
  Card card_;
  std::vector<Card> cards_;
  std::byte* arena_ = nullptr;
  Places places_;
  std::vector<std::uint64_t> arenas_;
  std::string route_; // of the first queue, for people
  std::vector<QueueLease> leases_; // last: what a queue may still write to outlives it
};

EngineChoice SetUp::choose(int peer) const {
  BadEngines bad = in_.source.pool->banned(gpu().node);
  bad.insert(in_.options.barred.begin(), in_.options.barred.end());
  const Gpu& other = in_.devices.gpu(in_.nodes[static_cast<std::size_t>(peer)]);
  if (other.node == gpu().node) return engines_to_self(gpu(), bad);
  return engines_to(gpu(), other, bad, in_.source.provider->preferred_engines(gpu(), other));
}

// The size of the rings is known once they are encoded; addresses do not matter for it.
void SetUp::lease() {
  const std::string refusal = in_.source.provider->refuses(gpu());
  if (!refusal.empty()) throw Failure(core::ErrorKind::other, fmt::format("{}", refusal));
  leases_.clear();
  peers_ = in_.job.ring_peers();
  if (peers_.size() > kMostQueues) {
    throw Failure(
        core::ErrorKind::other, fmt::format("{} ranks are too many for queues", peers_.size()));
  }
  Places nowhere;
  nowhere.ranks.assign(static_cast<std::size_t>(in_.job.ranks()), {kPage, kPage, kPage, kPage});
  nowhere.trigger = nowhere.done = nowhere.own_send = nowhere.own_recv = kPage;
  const auto programs = make_program(in_.job, nowhere, generation_, max_packet_);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const EngineChoice choice = choose(peers_[i]);
    if (i == 0) route_ = choice.why;
    leases_.push_back(in_.source.pool->lease(gpu(), choice, ArmedRing::ring_bytes(programs[i])));
  }
}

SharedBuffer SetUp::share(const void* buffer, std::uint64_t bytes) {
  if (buffer == nullptr || bytes == 0) return {};
  const auto found = in_.devices.runtime.find(buffer);
  const auto* const at = static_cast<const std::byte*>(buffer);
  if (!found || at + bytes > found->base + found->bytes) {
    throw Failure(
        core::ErrorKind::buffer,
        fmt::format("{} bytes at {} are not in one allocation of a GPU", bytes, buffer),
        "allocate each buffer as a whole, with hipMalloc");
  }
  return {in_.devices.cache.offer(*found), static_cast<std::uint64_t>(at - found->base), bytes};
}

// Zero, or where words count from, before anybody is told where it is.
void SetUp::make_memory() {
  const Runtime& runtime = in_.devices.runtime;
  const OwnMemory arena(runtime, gpu().node, probe_arena_bytes(in_.job.ranks()));
  stamp_arena(in_.devices, arena.mapping().get(), in_.job.rank());
  arena_ = arena.mapping().get();
  arena_mappings_.push_back(arena.mapping());
  card_.arena = share(arena_, probe_arena_bytes(in_.job.ranks()));
  const std::size_t bytes = in_.job.stage_bytes() + (hardware_ ? signal_bytes() : 0);
  std::byte* words = hardware_ ? nullptr : host_words(in_.job.rank());
  if (bytes > 0) {
    const OwnMemory own(runtime, gpu().node, bytes);
    mappings_.push_back(own.mapping());
    card_.own = share(own.mapping().get(), bytes);
    if (hardware_) words = own.mapping().get();
  }
  const std::vector<std::uint64_t> first(in_.job.signal_bytes() / 8, in_.options.first);
  runtime.copy(words, first.data(), in_.job.signal_bytes());
  card_.send = share(in_.buffers.send, in_.buffers.send_bytes);
  card_.recv = share(in_.buffers.recv, in_.buffers.recv_bytes);
  control_.page = in_.source.provider->control_page(gpu());
  *control_.trigger() = in_.options.first;
  *control_.done() = in_.options.first;
  marks_ = in_.source.provider->control_page(gpu());
}

std::byte* SetUp::open(const SharedBuffer& buffer, std::vector<Mapping>& mappings) {
  if (buffer.bytes == 0) return nullptr;
  mappings.push_back(in_.devices.cache.open(buffer.allocation, gpu().node));
  return mappings.back().get() + buffer.offset;
}

// Where blocks differ, each of the receive buffers has one for this rank, at a place of its own.
void SetUp::find_blocks() {
  places_.own_send = places_.ranks[me_].send;
  places_.own_recv = places_.ranks[me_].recv;
  for (std::size_t rank = 0; rank < places_.ranks.size(); ++rank) {
    places_.ranks[rank].recv += in_.job.job().pairs[rank].their_recv_at;
  }
}

void SetUp::open_all() {
  const auto number = [](const std::byte* at) { return reinterpret_cast<std::uint64_t>(at); };
  for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
    const Card& card = cards_[rank];
    const std::byte* const own = open(card.own, mappings_);
    RankPlaces places;
    places.send = number(open(card.send, mappings_));
    places.recv = number(open(card.recv, mappings_));
    places.stage = number(hardware_ ? own + signal_bytes() : own);
    places.signals = number(hardware_ ? own : host_words(static_cast<int>(rank)));
    places_.ranks.push_back(places);
    arenas_.push_back(number(open(card.arena, arena_mappings_)));
  }
  // In place, the source of a block is the receive buffer.
  for (RankPlaces& places : places_.ranks) {
    if (places.send == 0) places.send = places.recv;
  }
  if (in_.job.job().unequal()) find_blocks();
  places_.trigger = reinterpret_cast<std::uint64_t>(control_.trigger());
  places_.done = reinterpret_cast<std::uint64_t>(control_.done());
}

// Queues that have been tried before are not tried again.
Status SetUp::probe() {
  ProbeGround ground;
  ground.arena = arena_;
  ground.arenas = arenas_;
  for (const RankPlaces& places : places_.ranks) {
    ground.words.push_back(places.signals + in_.job.signal_bytes());
  }
  std::vector<ProbeQueue> queues;
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    if (!leases_[i].fresh()) continue;
    queues.push_back({&*leases_[i], peers_[i]});
    ground.marks.push_back(marks_.get() + i);
  }
  const auto verdicts = probe_queues(in_.devices, in_.team, queues, ground, generation_);
  Status status;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (verdicts[i].empty()) continue;
    queues[i].queue->give_up();
    in_.source.pool->ban(queues[i].queue->node(), queues[i].queue->engine());
    if (status.ok()) {
      status = {
          core::ErrorKind::other, fmt::format("the trial of SDMA queues: {}", verdicts[i]),
          "see ferry-info --selftest on this machine"};
    }
  }
  return status;
}

std::string SetUp::explain() const {
  const std::string blocks = in_.job.job().unequal()
                                 ? "blocks of their own sizes"
                                 : fmt::format("{} bytes a block", in_.job.job().block_bytes);
  return fmt::format(
      "sdma: {} queues of the {} provider ({}); {}, pushed", leases_.size(),
      in_.source.provider->name(), route_, blocks);
}

SdmaParts SetUp::assemble() {
  SdmaParts parts;
  parts.why = explain();
  auto programs = make_program(in_.job, places_, generation_, max_packet_);
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    parts.rings.emplace_back(
        std::move(leases_[i]), std::move(programs[i]), generation_, in_.options.first);
  }
  parts.control = control_;
  parts.mappings = std::move(mappings_);
  parts.first = in_.options.first;
  parts.in_hardware = hardware_;
  parts.node = gpu().node;
  parts.rank = in_.team.rank();
  for (int rank = 0; rank < in_.team.ranks(); ++rank) {
    parts.boards.push_back(reinterpret_cast<FaultBoard*>(in_.team.block(rank)));
  }
  parts.label =
      fmt::format("persistent {} on {}", core::name_of(in_.job.job().operation), in_.team.name());
  return parts;
}

SetUpResult SetUp::run() {
  in_.team.share(kFaultBoardBytes + (hardware_ ? 0 : signal_bytes()));
  Status status = try_together(in_.team, [&] {
    lease();
    make_memory();
  });
  if (!status.ok()) return {nullptr, status, false};
  cards_ = gather(in_.team, card_);
  status = try_together(in_.team, [&] { open_all(); });
  if (!status.ok()) return {nullptr, status, false};
  status = agree(in_.team, probe());
  if (!status.ok()) return {nullptr, status, true};
  arena_mappings_.clear();
  SetUpResult result;
  result.status = try_together(
      in_.team, [&] { result.plan = std::make_unique<SdmaPlan>(in_.devices, assemble()); });
  if (!result.status.ok()) result.plan.reset();
  return result;
}

} // namespace

// After a failed trial its engine is not used any more: the next attempt takes others.
SetUpResult set_up_sdma(const SetUpInput& input) {
  SetUpResult result;
  result.again = true;
  for (int trial = 0; trial < kTrials && result.again; ++trial) {
    SetUp set_up(input);
    result = set_up.run();
  }
  return result;
}

} // namespace ferry::amd
