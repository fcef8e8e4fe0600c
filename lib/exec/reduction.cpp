// SPDX-License-Identifier: MIT
#include "lib/exec/reduction.hpp"

#include <cstring>

#include "lib/memory/scratch.hpp"

namespace ferry::core {

ReductionScript::ReductionScript(
    const CollectiveDesc& whole, int rank, int ranks, std::uint64_t small_bytes, bool one_stage)
    : whole_(whole), rank_(rank), ranks_(ranks) {
  for (const std::uint64_t count : whole.reduction->counts) {
    first_.push_back(total_);
    total_ += count;
  }
  const bool scattered = whole.operation == Operation::reduce_scatter;
  if ((one_stage || !scattered) && bytes_of(total_) <= small_bytes) {
    add_gather_all();
    return;
  }
  add_exchange();
  if (!scattered) add_collection();
}

ReductionScript::~ReductionScript() = default;

bool ReductionScript::fits(const CollectiveDesc& desc) const {
  const Reduction& mine = *whole_.reduction;
  const Reduction& theirs = *desc.reduction;
  return desc.operation == whole_.operation && desc.root == whole_.root &&
         desc.send == whole_.send && desc.recv == whole_.recv && theirs.op == mine.op &&
         theirs.type == mine.type && theirs.counts == mine.counts;
}

std::uint64_t ReductionScript::bytes_of(std::uint64_t elements) const {
  return elements * whole_.reduction->element_bytes;
}

Block ReductionScript::bytes_block(std::uint64_t at, std::uint64_t bytes) const {
  return {static_cast<std::int64_t>(at), contiguous_layout(bytes, 1)};
}

CollectiveDesc ReductionScript::bytes_desc(
    Operation operation, const void* send, void* recv) const {
  CollectiveDesc desc;
  desc.operation = operation;
  desc.form = whole_.form;
  desc.of_reduction = true;
  desc.root = whole_.operation == Operation::reduce ? whole_.root : 0;
  desc.send = send;
  desc.recv = recv;
  return desc;
}

std::byte* ReductionScript::make_operands(std::uint64_t bytes) {
  scratch_ = Scratch(bytes);
  return scratch_.data();
}

void ReductionScript::add_gather_all() {
  const std::uint64_t bytes = bytes_of(total_);
  const bool rooted = whole_.operation == Operation::reduce;
  const bool receives = !rooted || rank_ == whole_.root;
  std::byte* all = receives ? make_operands(bytes * static_cast<std::uint64_t>(ranks_)) : nullptr;
  CollectiveDesc desc =
      bytes_desc(rooted ? Operation::gather : Operation::allgather, whole_.send, all);
  if (rooted) {
    auto blocks = std::make_shared<Irregular>();
    blocks->send.resize(static_cast<std::size_t>(ranks_));
    blocks->recv.resize(static_cast<std::size_t>(ranks_));
    blocks->send[static_cast<std::size_t>(whole_.root)] = bytes_block(0, bytes);
    for (std::size_t i = 0; receives && i < blocks->recv.size(); ++i) {
      blocks->recv[i] = bytes_block(i * bytes, bytes);
    }
    desc.irregular = std::move(blocks);
  } else {
    desc.send_layout = contiguous_layout(bytes, 1);
    desc.recv_layout = desc.send_layout;
  }
  stages_.push_back(std::move(desc));
  stride_ = bytes;
  reduced_ = receives ? total_ : 0;
  part_ = static_cast<std::byte*>(whole_.recv);
  if (whole_.operation != Operation::reduce_scatter) return;
  const auto me = static_cast<std::size_t>(rank_);
  begin_ = bytes_of(first_[me]);
  reduced_ = whole_.reduction->counts[me];
}

void ReductionScript::add_exchange() {
  const auto me = static_cast<std::size_t>(rank_);
  const auto& counts = whole_.reduction->counts;
  const std::uint64_t mine = bytes_of(counts[me]);
  CollectiveDesc desc = bytes_desc(
      Operation::alltoall, whole_.send, make_operands(mine * static_cast<std::uint64_t>(ranks_)));
  desc.root = 0;
  auto blocks = std::make_shared<Irregular>();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    blocks->send.push_back(bytes_block(bytes_of(first_[i]), bytes_of(counts[i])));
    blocks->recv.push_back(bytes_block(i * mine, mine));
  }
  desc.irregular = std::move(blocks);
  stages_.push_back(std::move(desc));
  stride_ = mine;
  reduced_ = counts[me];
  part_ = static_cast<std::byte*>(whole_.recv);
}

// Every rank's part goes to all, or to the root.
void ReductionScript::add_collection() {
  const auto me = static_cast<std::size_t>(rank_);
  const auto& counts = whole_.reduction->counts;
  const bool rooted = whole_.operation == Operation::reduce;
  const bool receives = !rooted || rank_ == whole_.root;
  // A rank without a receive buffer keeps its result where the first operand was.
  part_ = receives ? static_cast<std::byte*>(whole_.recv) + bytes_of(first_[me]) : scratch_.data();
  CollectiveDesc desc =
      bytes_desc(rooted ? Operation::gather : Operation::allgather, part_, whole_.recv);
  desc.own_block = false;
  auto blocks = std::make_shared<Irregular>();
  blocks->send.resize(counts.size());
  blocks->recv.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool sends = !rooted || static_cast<int>(i) == whole_.root;
    if (sends) blocks->send[i] = bytes_block(0, bytes_of(counts[me]));
    if (receives) blocks->recv[i] = bytes_block(bytes_of(first_[i]), bytes_of(counts[i]));
  }
  desc.irregular = std::move(blocks);
  stages_.push_back(std::move(desc));
}

// The last operand is the first of the result; the others are applied from the left.
Status ReductionScript::reduce() const {
  const auto count = static_cast<MPI_Count>(reduced_);
  std::byte* operands = scratch_.data() + begin_;
  std::byte* sum = operands + static_cast<std::uint64_t>(ranks_ - 1) * stride_;
  for (int i = ranks_ - 2; i >= 0; --i) {
    const int code = PMPI_Reduce_local_c(
        operands + static_cast<std::uint64_t>(i) * stride_, sum, count, whole_.reduction->type,
        whole_.reduction->op);
    if (code != MPI_SUCCESS) {
      return {ErrorKind::below, "MPI_Reduce_local of the MPI below failed", "see its text"};
    }
  }
  if (part_ != sum) std::memmove(part_, sum, bytes_of(reduced_));
  return {};
}

Status ReductionScript::finish(std::size_t stage) {
  if (stage > 0 || reduced_ == 0) return {};
  return reduce();
}

} // namespace ferry::core
