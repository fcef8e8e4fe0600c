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

namespace {

// What ranks must have in common; of an irregular call sizes are no part of it.
CallShape shape_of(const CollectiveDesc& desc) {
  const std::uint64_t bytes = desc.irregular == nullptr ? desc.block_bytes() : 0;
  return {desc.operation, desc.in_place, bytes, desc.root};
}

} // namespace

NodeOp::NodeOp(
    std::shared_ptr<const NodePlan> plan, const CollectiveDesc& desc, const Team& team,
    NodeChannel& channel, Exchanges exchanges, std::uint64_t framed)
    : plan_(std::move(plan)),
      desc_(desc),
      rank_(team.rank()),
      channel_(channel),
      exchanges_(std::move(exchanges)) {
  if (framed > 0) {
    auto blocks = std::make_unique<FramedBlocks>(desc_, rank_, team.ranks(), framed);
    framed_ = blocks.get();
    blocks_ = std::move(blocks);
  } else {
    blocks_ = std::make_unique<DescBlocks>(desc_, rank_);
  }
}

void NodeOp::start() {
  const bool moves =
      desc_.operation != Operation::broadcast && desc_.operation != Operation::barrier;
  if (!desc_.in_place && moves) desc_.copy_own_block(rank_);
  channel_.announce(shape_of(desc_));
  run_.begin(*plan_, channel_, *blocks_, exchanges_);
}

Poll NodeOp::progress() {
  return run_.progress();
}

std::string NodeOp::missing(const std::vector<int>& members) const {
  if (run_.in_exchange()) {
    const std::vector<int> ranks = run_.senders();
    return fmt::format(
        "bytes of rank{} {} of other nodes", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  }
  const int member = run_.waits_for();
  return fmt::format(
      "{} of {}", run_.step(),
      member < 0 ? std::string("other nodes")
                 : fmt::format("rank {}", members[static_cast<std::size_t>(member)]));
}

NodeTeam::NodeTeam(Team& team, Bootstrap& bootstrap, NodeResources resources)
    : team_(team),
      bootstrap_(bootstrap),
      map_(std::move(resources.map)),
      memory_(team, map_, resources.block, resources.blocks),
      limits_(node_limits(table(), node_stage_bytes(config()))),
      frames_(limits_.exchange_bytes) {}

const std::vector<int>& NodeTeam::mates() const {
  return map_.members[static_cast<std::size_t>(map_.node(team_.rank()))];
}

// Bytes of the blocks as all ranks know them: one entry when they are alike.
std::vector<std::uint64_t> NodeTeam::sizes(const CollectiveDesc& desc) const {
  if (desc.operation == Operation::barrier) return {0};
  if (desc.irregular == nullptr) return {desc.block_bytes()};
  if (desc.operation == Operation::alltoall) {
    return {FramedBlocks::frame_bytes(frames_.bytes())};
  }
  if (desc.operation == Operation::gather) { // of a reduction: alike
    const bool receives = team_.rank() == desc.root;
    return {(receives ? desc.recv_block(desc.root) : desc.send_block(desc.root)).bytes()};
  }
  std::vector<std::uint64_t> bytes;
  for (int rank = 0; rank < team_.ranks(); ++rank) bytes.push_back(desc.recv_block(rank).bytes());
  return bytes;
}

std::string NodeTeam::refuse_long(const char* limit, std::uint64_t bytes) const {
  return fmt::format("more than {} {}, {}", limit, bytes, table_record().name);
}

std::string NodeTeam::refuse_alltoall(const CollectiveDesc& desc) {
  if (desc.irregular == nullptr) {
    if (desc.block_bytes() <= limits_.alltoall_bytes) return {};
    return refuse_long("node_alltoall_bytes", limits_.alltoall_bytes);
  }
  if (may_frame(desc)) return refuse_long("node_exchange_bytes", limits_.exchange_bytes);
  // What is too long shows on the way only, when another call must still be possible.
  if (desc.form == Form::nonblocking) return "ranks do not know the counts of others";
  if (desc.in_place) return "ranks do not know the counts of others, in place";
  if (limits_.exchange_bytes == 0) return refuse_long("node_exchange_bytes", 0);
  if (frames_.pass()) {
    return refuse_long("node_exchange_bytes", frames_.most()) + ", in a call before";
  }
  while (plan_of(desc)->rounds.size() > 1) { // once a size, since plans are pure
    if (!frames_.shrink()) return "too many ranks for frames of irregular blocks";
  }
  return {};
}

// Empty: not refused.
std::string NodeTeam::refuse(const CollectiveDesc& desc) {
  if (desc.reduction != nullptr) {
    std::uint64_t bytes = 0;
    for (const std::uint64_t count : desc.reduction->counts) bytes += count;
    bytes *= desc.reduction->element_bytes;
    const std::uint64_t room = limits_.stage_bytes / 2 / static_cast<std::uint64_t>(team_.ranks());
    if (bytes > limits_.reduce_bytes) return refuse_long("node_reduce_bytes", limits_.reduce_bytes);
    return bytes > room ? "too many ranks for a stage of all operands" : "";
  }
  if (desc.operation == Operation::alltoall) {
    if (std::string why = refuse_alltoall(desc); !why.empty()) return why;
  }
  if ((desc.operation == Operation::gather || desc.operation == Operation::scatter) &&
      !desc.of_reduction) {
    return "gather and scatter have no plan over nodes";
  }
  if (desc.operation == Operation::allgather) {
    const std::vector<std::uint64_t> blocks = sizes(desc);
    if (*std::max_element(blocks.begin(), blocks.end()) > limits_.spread_bytes) {
      return refuse_long("node_spread_bytes", limits_.spread_bytes);
    }
  }
  const bool fits = plan_of(desc)->stage_bytes <= limits_.stage_bytes;
  return fits ? "" : "too many ranks for a stage";
}

const std::string* NodeTeam::keep(const std::string& reason) {
  return &*reasons_.insert(fmt::format("the ranks are on {} nodes; {}", map_.nodes(), reason))
               .first;
}

const std::string* NodeTeam::refusal(const CollectiveDesc& desc) {
  const std::string reason = refuse(desc);
  return reason.empty() ? nullptr : keep(reason);
}

const std::string* NodeTeam::why_too_long(std::uint64_t longest) {
  if (longest > frames_.most()) return keep(refuse_long("node_exchange_bytes", frames_.most()));
  return keep(fmt::format("a block is longer than its frame of {} bytes", frames_.bytes()));
}

bool NodeTeam::may_frame(const CollectiveDesc& desc) const {
  return desc.form == Form::persistent && desc.operation == Operation::alltoall &&
         desc.irregular != nullptr && limits_.exchange_bytes > 0;
}

std::uint64_t NodeTeam::frames_for(const CollectiveDesc& desc, std::uint64_t longest) {
  if (longest > limits_.exchange_bytes) return 0;
  const std::uint64_t bytes = std::max<std::uint64_t>(longest, 1);
  const auto plan = plan_of(desc, bytes);
  return plan->rounds.size() == 1 && plan->stage_bytes <= limits_.stage_bytes ? bytes : 0;
}

std::shared_ptr<const NodePlan> NodeTeam::plan_of(
    const CollectiveDesc& desc, std::uint64_t framed) {
  Key key{desc.operation, desc.root, {FramedBlocks::frame_bytes(framed)}};
  if (framed == 0) key.sizes = sizes(desc);
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
  const bool framed = desc.operation == Operation::alltoall && desc.irregular != nullptr;
  return std::make_shared<NodeOp>(
      std::move(plan), desc, team_, memory_.channel(), std::move(exchanges),
      framed ? frames_.bytes() : 0);
}

std::byte* NodeTeam::provide(const CollectiveDesc& desc, std::uint64_t framed) {
  if (mates().size() == 1) return nullptr;
  const std::uint64_t bytes = node_block_bytes(plan_of(desc, framed)->stage_bytes);
  return static_cast<std::byte*>(Heap::instance().allocate(bytes));
}

std::unique_ptr<NodeHandle> NodeTeam::link(
    const CollectiveDesc& desc, std::byte* block, const std::vector<std::uint64_t>& offsets,
    std::uint64_t framed) {
  auto handle = std::make_unique<NodeHandle>();
  handle->memory = std::make_unique<NodeMemory>(team_, map_, block, offsets);
  NodeChannel& channel = handle->memory->channel();
  auto plan = plan_of(desc, framed);
  Exchanges exchanges = exchanges_of(*plan, channel);
  handle->op =
      std::make_unique<NodeOp>(std::move(plan), desc, team_, channel, std::move(exchanges), framed);
  return handle;
}

} // namespace ferry::core
