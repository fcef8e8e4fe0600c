// SPDX-License-Identifier: MIT
#include "lib/exec/node_team.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "lib/exec/block.hpp"
#include "lib/exec/graveyard.hpp"
#include "lib/exec/lane.hpp"

namespace ferry::core {
namespace {

constexpr std::size_t kKeptPlans = 64; // new sizes without end must not grow memory

} // namespace

std::uint64_t node_stage_bytes(const Config& config) {
  constexpr std::uint64_t kChunks = 4;
  return kChunks * plan_limits(config, 2, false).stage_bytes;
}

std::uint64_t node_block_bytes(std::uint64_t stage_bytes) {
  return sizeof(BlockHeader) + NodeChannel::bytes_for(stage_bytes);
}

NodeMemory::NodeMemory(
    Team& team, const NodeMap& map, std::byte* block, const std::vector<std::uint64_t>& offsets)
    : me_(map.index(team.rank())) {
  const auto& mates = map.members[static_cast<std::size_t>(map.node(team.rank()))];
  if (block == nullptr) {
    // Nobody else sees it: ordinary memory will do, but aligned and clean.
    const std::uint64_t bytes = (node_block_bytes(node_stage_bytes(config())) + 63) / 64 * 64;
    alone_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
    if (alone_ == nullptr) {
      throw Failure(ErrorKind::no_memory, "no memory for a stage", "give this node more memory");
    }
    std::fill_n(alone_, sizeof(BlockHeader) + sizeof(NodeWords), std::byte{});
    blocks_.push_back(alone_);
  } else {
    for (int rank : mates) {
      blocks_.push_back(team.member(rank).heap->base() + offsets[static_cast<std::size_t>(rank)]);
    }
  }
  std::vector<std::byte*> words;
  for (std::byte* one : blocks_) words.push_back(one + sizeof(BlockHeader));
  channel_ = std::make_unique<NodeChannel>(std::move(words), me_, [&team, mates](int member) {
    team.wake_rank(mates[static_cast<std::size_t>(member)], true);
  });
}

NodeMemory::~NodeMemory() {
  if (abandoned_) return;
  if (alone_ != nullptr) {
    std::free(alone_);
    return;
  }
  for (int member = 0; member < static_cast<int>(blocks_.size()); ++member) {
    if (member == me_) continue;
    // Pairs with the acquire in reap_blocks().
    header_of(blocks_[static_cast<std::size_t>(member)])
        .departed.fetch_add(1, std::memory_order_release);
  }
  bury_block(blocks_[static_cast<std::size_t>(me_)], blocks_.size() - 1);
}

void DescBlocks::load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const {
  const int block = desc_.operation == Operation::alltoall ? rank : rank_;
  if (desc_.in_place) {
    pack(desc_.recv_block(block), desc_.recv_base(block), skip, bytes, to);
  } else {
    pack(desc_.send_block(block), desc_.send_base(block), skip, bytes, to);
  }
}

void DescBlocks::store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) {
  unpack(desc_.recv_block(rank), desc_.recv_base(rank), skip, bytes, from);
}

NodeOp::NodeOp(
    std::shared_ptr<const NodePlan> plan, const CollectiveDesc& desc, int rank,
    NodeChannel& channel, Exchanges exchanges)
    : plan_(std::move(plan)),
      blocks_(desc, rank),
      rank_(rank),
      channel_(channel),
      exchanges_(std::move(exchanges)) {}

void NodeOp::start() {
  const CollectiveDesc& desc = blocks_.desc();
  if (!desc.in_place && desc.operation != Operation::broadcast) desc.copy_own_block(rank_);
  run_.begin(*plan_, channel_, blocks_, exchanges_);
}

Poll NodeOp::progress() {
  return run_.progress();
}

std::string NodeOp::missing(const std::vector<int>& members) const {
  const int member = run_.waits_for();
  if (run_.in_exchange()) return "bytes of other nodes";
  return fmt::format(
      "{} of {}", run_.step(),
      member < 0 ? std::string("other nodes")
                 : fmt::format("rank {}", members[static_cast<std::size_t>(member)]));
}

NodeTeam::NodeTeam(Team& team, Bootstrap& bootstrap, NodeResources resources)
    : team_(team),
      bootstrap_(bootstrap),
      map_(std::move(resources.map)),
      memory_(team, map_, resources.block, resources.blocks) {
  limits_ = node_limits(table(), node_stage_bytes(config()));
}

const std::vector<int>& NodeTeam::mates() const {
  return map_.members[static_cast<std::size_t>(map_.node(team_.rank()))];
}

// Bytes of the blocks as all ranks know them: one entry when they are alike.
std::vector<std::uint64_t> NodeTeam::sizes(const CollectiveDesc& desc) const {
  if (desc.irregular == nullptr) return {desc.block_bytes()};
  std::vector<std::uint64_t> bytes;
  for (int rank = 0; rank < team_.ranks(); ++rank) bytes.push_back(desc.recv_block(rank).bytes());
  return bytes;
}

bool NodeTeam::takes(const CollectiveDesc& desc) {
  switch (desc.operation) {
    case Operation::alltoall: // of an irregular one a rank knows its own blocks only
      if (desc.irregular != nullptr || desc.block_bytes() > limits_.alltoall_bytes) return false;
      break;
    case Operation::allgather:
    case Operation::broadcast:
      break;
    default:
      return false;
  }
  return plan_of(desc)->stage_bytes <= limits_.stage_bytes; // with very many ranks
}

std::shared_ptr<const NodePlan> NodeTeam::plan_of(const CollectiveDesc& desc) {
  Key key{desc.operation, desc.root, sizes(desc)};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  if (plans_.size() >= kKeptPlans) {
    plans_.clear();
    ++plan_generation_;
  }
  const NodeInput input{desc.operation, team_.rank(), &map_, desc.root, key.sizes, limits_};
  auto plan = std::make_shared<const NodePlan>(plan_nodes(input));
  return plans_.emplace(std::move(key), std::move(plan)).first->second;
}

Exchanges NodeTeam::exchanges_of(const NodePlan& plan, NodeChannel& channel) {
  return prepare_shapes(
      plan, channel.stage(channel.me()), [this](const auto& sends, const auto& receives) {
        return bootstrap_.prepare(sends, receives);
      });
}

std::shared_ptr<NodeOp> NodeTeam::prepare(const CollectiveDesc& desc) {
  auto plan = plan_of(desc);
  Exchanges exchanges = exchanges_of(*plan, memory_.channel());
  return std::make_shared<NodeOp>(
      std::move(plan), desc, team_.rank(), memory_.channel(), std::move(exchanges));
}

std::byte* NodeTeam::provide(const CollectiveDesc& desc) {
  if (mates().size() == 1) return nullptr;
  const std::uint64_t bytes = node_block_bytes(plan_of(desc)->stage_bytes);
  return static_cast<std::byte*>(Heap::instance().allocate(bytes));
}

std::unique_ptr<NodeHandle> NodeTeam::link(
    const CollectiveDesc& desc, std::byte* block, const std::vector<std::uint64_t>& offsets) {
  auto handle = std::make_unique<NodeHandle>();
  handle->memory = std::make_unique<NodeMemory>(team_, map_, block, offsets);
  NodeChannel& channel = handle->memory->channel();
  auto plan = plan_of(desc);
  Exchanges exchanges = exchanges_of(*plan, channel);
  handle->op =
      std::make_unique<NodeOp>(std::move(plan), desc, team_.rank(), channel, std::move(exchanges));
  return handle;
}

} // namespace ferry::core
