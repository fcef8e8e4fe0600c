// SPDX-License-Identifier: MIT
// Blocks of unequal sizes on modelled GPUs, carried by copy engines: alltoallv and alltoallw,
// allgatherv, gatherv, scatterv, with blocks that lie apart, in any order, and many that are empty.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

constexpr std::size_t kGap = 24; // between blocks
constexpr unsigned char kPoison = 0x77;

struct Sizes {
  Operation operation = Operation::alltoall;
  std::uint64_t seed = 1;
  int root = 0;
  bool in_place = false;
  std::size_t longest = 6000;

  [[nodiscard]] std::size_t some(int a, int b) const {
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(a * 64 + b);
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return x % 3 == 0 ? 0 : x / 3 % longest;
  }
  [[nodiscard]] std::size_t of(int from, int to) const {
    switch (operation) {
      case Operation::alltoall:
        return in_place ? some(std::min(from, to), std::max(from, to)) : some(from, to);
      case Operation::allgather:
        return some(from, 0);
      case Operation::gather:
        return to == root ? some(from, 0) : 0;
      default:
        return from == root ? some(to, 0) : 0;
    }
  }
};

// What one rank sends or receives, the last rank's block first.
class Side {
 public:
  Side(Rig& rig, const std::vector<std::size_t>& bytes, bool same) {
    std::size_t at = kGap;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      places_.push_back(at);
      if (!same || i == 0) at += bytes[i] + kGap;
    }
    std::reverse(places_.begin(), places_.end());
    bytes_ = bytes;
    buffer_ = std::make_unique<RigBuffer>(rig, at);
    all_.resize(at);
  }
  [[nodiscard]] std::vector<core::Block> blocks() const {
    std::vector<core::Block> blocks;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      blocks.push_back(
          {static_cast<std::int64_t>(places_[i]), core::contiguous_layout(bytes_[i], 1)});
    }
    return blocks;
  }
  [[nodiscard]] std::byte* data() { return buffer_->data(); }
  void poison() { std::fill(all_.begin(), all_.end(), kPoison); }
  void set(int iteration, int peer, int from, int to) {
    const auto i = static_cast<std::size_t>(peer);
    for (std::size_t k = 0; k < bytes_[i]; ++k) {
      all_[places_[i] + k] = pattern_byte(iteration, from, to, k);
    }
  }
  void write() { buffer_->write(all_); }
  // Bytes that are not as they were set, between blocks too.
  [[nodiscard]] std::size_t wrong() {
    const std::vector<unsigned char> seen = buffer_->read();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) wrong += seen[i] != all_[i] ? 1 : 0;
    return wrong;
  }

 private:
  std::vector<std::size_t> bytes_; // of each rank's block
  std::vector<std::size_t> places_;
  std::unique_ptr<RigBuffer> buffer_;
  std::vector<unsigned char> all_;
};

class UnequalRun {
 public:
  UnequalRun(Rig& rig, core::DeviceTeam& team, const Sizes& sizes)
      : rig_(rig),
        sizes_(sizes),
        send_(rig, row(true), sizes.operation == Operation::allgather),
        recv_(rig, row(false), false) {
    auto blocks = std::make_shared<core::Irregular>();
    blocks->recv = recv_.blocks();
    blocks->send = sizes.in_place ? blocks->recv : send_.blocks();
    core::CollectiveDesc desc;
    desc.operation = sizes.operation;
    desc.form = core::Form::persistent;
    desc.root = sizes.root;
    desc.in_place = sizes.in_place;
    desc.own_block = !sizes.in_place;
    desc.recv = recv_.data();
    desc.send = sizes.in_place ? recv_.data() : send_.data();
    desc.irregular = std::move(blocks);
    plan_ = rig.backend().make_plan(desc, team);
  }
  [[nodiscard]] core::DevicePlan& plan() { return *plan_; }

  std::size_t run(int iteration) {
    const int me = rig_.rank();
    recv_.poison();
    for (int peer = 0; peer < rig_.ranks(); ++peer) {
      send_.set(iteration, peer, me, to_of(peer));
      if (sizes_.in_place) recv_.set(iteration, peer, me, peer);
    }
    send_.write();
    recv_.write();
    plan_->start();
    const core::Status status = finish(*plan_);
    if (!status.ok()) throw core::Failure(status);
    for (int peer = 0; peer < rig_.ranks(); ++peer) {
      recv_.set(iteration, peer, peer, to_of(me));
    }
    return recv_.wrong() + send_.wrong();
  }

 private:
  [[nodiscard]] int to_of(int to) const {
    return sizes_.operation == Operation::allgather ? 0 : to;
  }
  [[nodiscard]] std::vector<std::size_t> row(bool send) const {
    std::vector<std::size_t> bytes;
    for (int peer = 0; peer < rig_.ranks(); ++peer) {
      bytes.push_back(send ? sizes_.of(rig_.rank(), peer) : sizes_.of(peer, rig_.rank()));
    }
    return bytes;
  }

  Rig& rig_;
  Sizes sizes_;
  Side send_;
  Side recv_;
  std::unique_ptr<core::DevicePlan> plan_;
};

void check_told(core::DevicePlan& plan, const char* provider) {
  const std::string text = plan.explain();
  CHECK_MESSAGE(contains(text, provider), text);
  CHECK_MESSAGE(contains(text, "blocks of their own sizes, pushed"), text);
}

std::vector<Sizes> all_calls(const Rig& rig, std::uint64_t seed) {
  const int last = rig.ranks() - 1;
  return {
      {Operation::alltoall, seed},          {Operation::allgather, seed},
      {Operation::gather, seed, last},      {Operation::scatter, seed, 0},
      {Operation::alltoall, seed, 0, true},
  };
}

TEST_CASE("amd: unequal blocks by copy engines, sizes that change from plan to plan") {
  RigSettings settings;
  settings.in_order = true;
  Rig rig(settings);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const Sizes& sizes : all_calls(rig, seed)) {
      CAPTURE(seed);
      const std::string operation = core::name_of(sizes.operation);
      CAPTURE(operation);
      CAPTURE(sizes.in_place);
      MpiTeam team = rig.fresh_team();
      UnequalRun run(rig, team, sizes);
      check_told(run.plan(), "of the kfd provider");
      for (int iteration = 1; iteration <= 4; ++iteration) CHECK(run.run(iteration) == 0);
    }
  }
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: unequal blocks on engines that use their freedom, in packets that are split") {
  RigSettings settings;
  settings.options.set_up.max_packet_bytes = 512;
  settings.seed = 301;
  Rig rig(settings);
  for (const Sizes& sizes : all_calls(rig, 17)) {
    MpiTeam team = rig.fresh_team();
    UnequalRun run(rig, team, sizes);
    for (int iteration = 1; iteration <= 2; ++iteration) CHECK(run.run(iteration) == 0);
  }
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: two plans of unequal blocks at once, started in turns") {
  RigSettings settings;
  settings.in_order = true;
  Rig rig(settings);
  MpiTeam first_team = rig.fresh_team();
  MpiTeam second_team = rig.fresh_team();
  UnequalRun first(rig, first_team, {Operation::alltoall, 7});
  UnequalRun second(rig, second_team, {Operation::alltoall, 8});
  for (int iteration = 1; iteration <= 6; ++iteration) {
    CHECK(first.run(iteration) == 0);
    CHECK(second.run(iteration) == 0);
  }
}

TEST_CASE("amd: unequal blocks, the host drives the copies") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::hsa;
  Rig rig(settings);
  for (const Sizes& sizes : all_calls(rig, 23)) {
    MpiTeam team = rig.fresh_team();
    UnequalRun run(rig, team, sizes);
    check_told(run.plan(), "of the hsa provider");
    for (int iteration = 1; iteration <= 2; ++iteration) CHECK(run.run(iteration) == 0);
  }
}

TEST_CASE("amd: nobody has a byte for anybody") {
  Rig rig({});
  for (Sizes sizes : all_calls(rig, 1)) {
    sizes.longest = 1;
    MpiTeam team = rig.fresh_team();
    UnequalRun run(rig, team, sizes);
    for (int iteration = 1; iteration <= 2; ++iteration) CHECK(run.run(iteration) == 0);
  }
}

TEST_CASE("amd: unequal blocks whose sizes do not match are an error on every rank") {
  Rig rig({});
  if (rig.ranks() == 1) return;
  Sizes sizes{Operation::alltoall, 3};
  if (rig.rank() == rig.ranks() - 1) sizes.seed = 4;
  MpiTeam team = rig.fresh_team();
  std::string cause;
  try {
    const UnequalRun run(rig, team, sizes);
  } catch (const core::Failure& failure) {
    cause = failure.status().cause;
  }
  CHECK_MESSAGE(contains(cause, " bytes to rank "), cause);
  CHECK_MESSAGE(contains(cause, ", which expects "), cause);
}

} // namespace
} // namespace ferry::test
