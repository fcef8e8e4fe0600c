// SPDX-License-Identifier: MIT
// The stages of reductions: which bytes go where, for operands of any length. Nothing is moved.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "lib/exec/reduction.hpp"

using ferry::core::CollectiveDesc;
using ferry::core::Form;
using ferry::core::is_exchange;
using ferry::core::Operation;
using ferry::core::Reduction;
using ferry::core::ReductionScript;

namespace {

constexpr std::uint64_t kWidth = 8;

std::byte* address(std::uint64_t value) {
  return reinterpret_cast<std::byte*>(value); // never read
}

CollectiveDesc whole(Operation operation, std::vector<std::uint64_t> counts, int root = 0) {
  auto reduction = std::make_shared<Reduction>();
  reduction->op = MPI_SUM;
  reduction->type = MPI_INT64_T;
  reduction->element_bytes = kWidth;
  reduction->counts = std::move(counts);
  CollectiveDesc desc;
  desc.operation = operation;
  desc.form = Form::persistent;
  desc.root = root;
  desc.send = address(1 << 20);
  desc.recv = address(2 << 20);
  desc.reduction = std::move(reduction);
  return desc;
}

std::vector<std::unique_ptr<ReductionScript>> scripts_of(
    const CollectiveDesc& desc, int ranks, std::uint64_t small) {
  std::vector<std::unique_ptr<ReductionScript>> scripts;
  for (int rank = 0; rank < ranks; ++rank) {
    scripts.push_back(std::make_unique<ReductionScript>(desc, rank, ranks, small));
  }
  return scripts;
}

// What rank `from` sends to rank `to` is as long as what that one expects.
void check_pairs(const std::vector<std::unique_ptr<ReductionScript>>& scripts, std::size_t stage) {
  const int ranks = static_cast<int>(scripts.size());
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const CollectiveDesc& out = scripts[static_cast<std::size_t>(from)]->stage(stage);
      const CollectiveDesc& in = scripts[static_cast<std::size_t>(to)]->stage(stage);
      CHECK(out.send_block(to).bytes() == in.recv_block(from).bytes());
      CHECK(is_exchange(out) == is_exchange(in));
      CHECK(out.operation == in.operation);
      CHECK(out.of_reduction);
    }
  }
}

} // namespace

TEST_CASE("reduction: small operands are gathered whole, by rank") {
  const auto all = scripts_of(whole(Operation::allreduce, {1, 2, 2}), 3, 40);
  for (const auto& script : all) {
    REQUIRE(script->stages() == 1);
    CHECK(script->stage(0).operation == Operation::allgather);
    CHECK(script->stage(0).block_bytes() == 5 * kWidth);
    CHECK(script->stage(0).send == address(1 << 20));
  }
  const auto to_root = scripts_of(whole(Operation::reduce, {1, 2, 2}, 1), 3, 40);
  check_pairs(to_root, 0);
  CHECK(to_root[1]->stage(0).recv_block(2).bytes() == 5 * kWidth);
  CHECK(to_root[1]->stage(0).recv_displacement(2) == 2 * 5 * kWidth);
  CHECK(to_root[0]->stage(0).recv_block(2).bytes() == 0);
}

TEST_CASE("reduction: longer operands go in parts, and results are put together in their order") {
  const std::vector<std::uint64_t> counts = {3, 4, 0, 5};
  const auto scripts = scripts_of(whole(Operation::allreduce, counts), 4, 8);
  for (std::size_t stage = 0; stage < 2; ++stage) check_pairs(scripts, stage);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const ReductionScript& script = *scripts[rank];
    REQUIRE(script.stages() == 2);
    std::uint64_t at = 0;
    for (int part = 0; part < 4; ++part) {
      const std::uint64_t bytes = counts[static_cast<std::size_t>(part)] * kWidth;
      const CollectiveDesc& exchange = script.stage(0);
      CHECK(exchange.send_displacement(part) == static_cast<std::int64_t>(at));
      CHECK(exchange.send_block(part).bytes() == bytes);
      // The operand of rank i is number i of those that this rank reduces.
      CHECK(
          exchange.recv_displacement(part) ==
          part * static_cast<std::int64_t>(counts[rank] * kWidth));
      const CollectiveDesc& collection = script.stage(1);
      CHECK(collection.recv_displacement(part) == static_cast<std::int64_t>(at));
      CHECK(collection.recv_block(part).bytes() == bytes);
      CHECK(!collection.own_block);
      at += bytes;
    }
  }
}

TEST_CASE("reduction: 2^40 elements are planned without memory for them") {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  // Rank 0 gets nothing of the result, so it reduces nothing.
  const ReductionScript scattered(
      whole(Operation::reduce_scatter, {0, kMany, kMany + 1}), 0, 3, 4064);
  REQUIRE(scattered.stages() == 1);
  CHECK(scattered.stage(0).operation == Operation::alltoall);
  CHECK(scattered.stage(0).send_block(1).bytes() == kMany * kWidth);
  CHECK(scattered.stage(0).send_displacement(2) == static_cast<std::int64_t>(kMany * kWidth));
  CHECK(scattered.stage(0).send_block(2).bytes() == (kMany + 1) * kWidth);
  CHECK(scattered.stage(0).recv_block(1).bytes() == 0);
  // Who is not the root gathers nothing.
  const ReductionScript gathered(
      whole(Operation::reduce, {kMany, kMany}, 1), 0, 2, 4 * kMany * kWidth);
  REQUIRE(gathered.stages() == 1);
  CHECK(gathered.stage(0).send_block(1).bytes() == 2 * kMany * kWidth);
  CHECK(gathered.stage(0).send_block(0).bytes() == 0);
}

TEST_CASE("reduction: a script serves the same call again, and no other") {
  const CollectiveDesc desc = whole(Operation::allreduce, {2, 2});
  const ReductionScript script(desc, 0, 2, 4064);
  CHECK(script.fits(desc));
  CollectiveDesc other = desc;
  other.send = address(3 << 20);
  CHECK(!script.fits(other));
  CHECK(!script.fits(whole(Operation::allreduce, {2, 3})));
  CHECK(!script.fits(whole(Operation::reduce, {2, 2})));
}
