// SPDX-License-Identifier: MIT
#include "lib/amd/kernel_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "lib/amd/exchange.hpp"
#include "lib/amd/selection.hpp"
#include "lib/config/config.hpp"

namespace ferry::amd {
namespace {

using core::Operation;
using core::Status;

// The smallest partition of the GPUs that kernels are compiled for has so many: all workgroups of a
// grid are resident, whatever GPU and partition it is.
constexpr std::uint32_t kComputeUnits = 32;
constexpr std::uint64_t kLine = 256;
constexpr std::uint32_t kGfx90a = 90010; // as the kernel has it

constexpr std::uint64_t lines(std::uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

bool is_wide(const KernelShape& shape) {
  return std::string_view(shape.kernel) == kWideKernel;
}

// Blocks that are too long for words of this operation go like the shortest that always are.
KernelShape shape_of(const Job& job, int ranks) {
  constexpr std::uint64_t kNeverWords = (32 << 10) + 1; // kKernelShapes
  const bool words = job.block_bytes <= longest_words(job.operation);
  return kernel_shape(
      words ? job.block_bytes : std::max(job.block_bytes, kNeverWords),
      static_cast<std::uint32_t>(ranks), kComputeUnits);
}

// What lies where in the memory that each rank makes for a plan; the same on all ranks.
struct Places {
  Places(const KernelShape& shape, std::uint64_t block_bytes, std::uint64_t ranks)
      : half_words((block_bytes + 3) / 4 + 1),
        pair(is_wide(shape) ? lines(shape.parts * 8) : lines(2 * half_words * 8)),
        table(kLine),
        words(table + lines(ranks * sizeof(device::WidePeer))),
        arrived(words + ranks * pair),
        bytes(arrived + (is_wide(shape) ? ranks * pair : 0)) {}
  std::uint64_t half_words;
  std::uint64_t pair; // of the words of one sender
  std::uint64_t table; // behind the progress
  std::uint64_t words; // by sender: words with flags, or `ready`
  std::uint64_t arrived;
  std::uint64_t bytes;
};

struct SharedPlace {
  SharedAllocation allocation;
  std::uint64_t offset = 0;
};

struct Card {
  SharedPlace own; // made for this plan
  SharedPlace recv;
  std::uint32_t has_recv = 0;
};

// Where a block of a job begins.
struct Blocks {
  const Job& job;
  std::uint64_t me;
  bool sends() const { return job.operation != Operation::broadcast || is_root(me); }
  bool is_root(std::uint64_t rank) const { return rank == static_cast<std::uint64_t>(job.root); }
  bool receives_from(std::uint64_t rank) const {
    return job.operation != Operation::broadcast || is_root(rank);
  }
  // In the send buffer, for rank `to`.
  std::uint64_t out(std::uint64_t to) const {
    return job.operation == Operation::alltoall ? to * job.block_bytes : 0;
  }
  // In a receive buffer, from rank `from`.
  std::uint64_t in(std::uint64_t from) const {
    return job.operation == Operation::broadcast ? 0 : from * job.block_bytes;
  }
};

class SetUp {
 public:
  explicit SetUp(const KernelSetUpInput& input)
      : in_(input),
        me_(static_cast<std::uint64_t>(input.team.rank())),
        ranks_(static_cast<std::uint64_t>(input.team.ranks())),
        shape_(shape_of(input.job, input.team.ranks())),
        places_(shape_, input.job.block_bytes, ranks_),
        blocks_{input.job, me_} {}

  SetUp(const SetUp&) = delete;
  SetUp& operator=(const SetUp&) = delete;
  // All ranks have agreed on how far it went.
  ~SetUp() { in_.devices.cache.withdraw(card_.recv.allocation); }

  KernelSetUpResult run();

 private:
  [[nodiscard]] const Gpu& gpu() const { return in_.devices.gpu(in_.nodes[me_]); }
  void make_memory();
  SharedPlace share(const void* at);
  std::byte* open(const SharedPlace& place);
  void open_all();
  // The buffer that blocks are sent from: in place it is the other one.
  [[nodiscard]] const std::byte* source(std::uint64_t to) const;
  template <class Peer>
  [[nodiscard]] Peer peer(std::uint64_t rank) const;
  template <class Args, class Peer>
  [[nodiscard]] Args arguments(const std::vector<Peer>& table);
  void fill(device::LowLatencyPeer& peer, std::uint64_t rank) const;
  void fill(device::WidePeer& peer, std::uint64_t rank) const;
  KernelParts assemble();

  const KernelSetUpInput& in_;
  const std::uint64_t me_;
  const std::uint64_t ranks_;
  const KernelShape shape_;
  const Places places_;
  const Blocks blocks_;
  Card card_;
  std::vector<Card> cards_;
  std::vector<Mapping> mappings_;
  std::vector<std::byte*> own_; // of each rank
  std::vector<std::byte*> recv_;
  KernelParts parts_;
};

SharedPlace SetUp::share(const void* at) {
  const auto found = in_.devices.runtime.find(at);
  if (!found) throw core::Failure(core::ErrorKind::buffer, "a buffer is in no memory of a GPU");
  const auto offset = static_cast<const std::byte*>(at) - found->base;
  return {in_.devices.cache.offer(*found), static_cast<std::uint64_t>(offset)};
}

// Zeroed before anybody is told where it is.
void SetUp::make_memory() {
  const Runtime& runtime = in_.devices.runtime;
  parts_.kernel = in_.devices.kernels.function(gpu(), shape_.kernel);
  parts_.stream = in_.devices.kernels.make_stream(parts_.kernel.device);
  parts_.report = std::static_pointer_cast<device::KernelReport>(
      in_.devices.kernels.host_memory(sizeof(device::KernelReport)));
  const Mapping own(
      runtime.allocate(gpu().node, places_.bytes, MemoryKind::uncached),
      [&runtime](std::byte* at) { runtime.release(at); });
  mappings_.push_back(own);
  card_.own = share(own.get());
  if (in_.buffers.recv != nullptr) {
    card_.recv = share(in_.buffers.recv);
    card_.has_recv = 1;
  }
}

std::byte* SetUp::open(const SharedPlace& place) {
  mappings_.push_back(in_.devices.cache.open(place.allocation, gpu().node));
  return mappings_.back().get() + place.offset;
}

void SetUp::open_all() {
  for (const Card& card : cards_) {
    own_.push_back(open(card.own));
    recv_.push_back(card.has_recv != 0 ? open(card.recv) : nullptr);
  }
}

const std::byte* SetUp::source(std::uint64_t to) const {
  if (in_.buffers.send != nullptr) {
    return static_cast<const std::byte*>(in_.buffers.send) + blocks_.out(to);
  }
  const bool each = in_.job.operation == Operation::alltoall;
  return static_cast<const std::byte*>(in_.buffers.recv) + blocks_.in(each ? to : me_);
}

void SetUp::fill(device::LowLatencyPeer& peer, std::uint64_t rank) const {
  if (peer.receive_bytes != 0)
    peer.to = static_cast<std::byte*>(in_.buffers.recv) + blocks_.in(rank);
  const auto words = [&](std::uint64_t at, std::uint64_t sender) {
    return reinterpret_cast<std::uint64_t*>(own_[at] + places_.words + sender * places_.pair);
  };
  peer.their_words = words(rank, me_);
  peer.own_words = words(me_, rank);
}

void SetUp::fill(device::WidePeer& peer, std::uint64_t rank) const {
  if (peer.send_bytes != 0) peer.to = recv_[rank] + blocks_.in(me_);
  const auto words = [&](std::uint64_t at, std::uint64_t sender, std::uint64_t kind) {
    return reinterpret_cast<std::uint64_t*>(own_[at] + kind + sender * places_.pair);
  };
  peer.their_ready = words(rank, me_, places_.words);
  peer.own_ready = words(me_, rank, places_.words);
  peer.their_arrived = words(rank, me_, places_.arrived);
  peer.own_arrived = words(me_, rank, places_.arrived);
}

template <class Peer>
Peer SetUp::peer(std::uint64_t rank) const {
  Peer peer;
  if (blocks_.sends()) {
    peer.from = source(rank);
    peer.send_bytes = in_.job.block_bytes;
  }
  if (blocks_.receives_from(rank)) peer.receive_bytes = in_.job.block_bytes;
  fill(peer, rank);
  return peer;
}

template <class Args, class Peer>
Args SetUp::arguments(const std::vector<Peer>& table) {
  std::byte* const own = own_[me_];
  in_.devices.runtime.copy(own + places_.table, table.data(), table.size() * sizeof(Peer));
  Args args;
  args.peers = reinterpret_cast<const Peer*>(own + places_.table);
  args.peer_count = table.size();
  args.progress = reinterpret_cast<device::KernelProgress*>(own);
  args.report = parts_.report.get();
  args.patience = ticks_of(parts_.patience, gpu().gfx == kGfx90a);
  if (in_.job.operation != Operation::broadcast && in_.buffers.send != nullptr) {
    args.own = {
        static_cast<std::byte*>(in_.buffers.recv) + blocks_.in(me_), source(me_),
        in_.job.block_bytes};
  }
  return args;
}

KernelParts SetUp::assemble() {
  parts_.shape = shape_;
  parts_.patience = in_.patience;
  parts_.label =
      fmt::format("persistent {} on {}", core::name_of(in_.job.operation), in_.team.name());
  std::vector<device::WidePeer> wide;
  std::vector<device::LowLatencyPeer> low;
  for (std::uint64_t next = 1; next < ranks_; ++next) {
    const std::uint64_t rank = (me_ + next) % ranks_;
    parts_.peers.push_back(static_cast<int>(rank));
    if (is_wide(shape_)) wide.push_back(peer<device::WidePeer>(rank));
    if (!is_wide(shape_)) low.push_back(peer<device::LowLatencyPeer>(rank));
  }
  if (is_wide(shape_)) {
    auto args = arguments<device::WideArgs>(wide);
    args.parts = shape_.parts;
    parts_.arguments = args;
  } else {
    auto args = arguments<device::LowLatencyArgs>(low);
    args.half_words = places_.half_words;
    parts_.arguments = args;
  }
  parts_.mappings = std::move(mappings_);
  parts_.why = fmt::format(
      "kernels: {} with {} workgroups of {} lanes; {} bytes a block", shape_.kernel, shape_.blocks,
      shape_.lanes, in_.job.block_bytes);
  return std::move(parts_);
}

KernelSetUpResult SetUp::run() {
  Status status = try_together(in_.team, [&] { make_memory(); });
  if (!status.ok()) return {nullptr, status};
  cards_ = gather(in_.team, card_);
  status = try_together(in_.team, [&] { open_all(); });
  if (!status.ok()) return {nullptr, status};
  KernelSetUpResult result;
  result.status = try_together(in_.team, [&] {
    result.plan = std::make_unique<KernelPlan>(in_.devices.kernels, assemble());
  });
  if (!result.status.ok()) result.plan.reset();
  return result;
}

} // namespace

// In place, alltoall reads and writes the same block: a kernel that moves words does it in this
// order for each of them, one that copies slices does not.
std::string kernels_refuse(const Devices& devices, const Job& job, int node, int ranks) {
  if (job.unequal()) return "kernels move blocks of equal size only";
  const KernelShape shape = shape_of(job, ranks);
  if (shape.kernel == nullptr) return fmt::format("{} ranks are too many for one kernel", ranks);
  if (job.in_place && job.operation == Operation::alltoall && is_wide(shape)) {
    return "kernels copy long blocks only from one buffer to another";
  }
  return devices.kernels.refuses(devices.gpu(node));
}

const char* kernel_of(const KernelSetUpInput& input) {
  return shape_of(input.job, input.team.ranks()).kernel;
}

KernelSetUpResult set_up_kernels(const KernelSetUpInput& input) {
  return SetUp(input).run();
}

} // namespace ferry::amd
