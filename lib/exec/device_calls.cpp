// SPDX-License-Identifier: MIT
#include "lib/exec/device_calls.hpp"

#include <algorithm>

#include "lib/exec/device_memory.hpp"

namespace ferry::core {
namespace {

constexpr int kBefore = 2; // calls, until one that repeats gets a plan

std::uint64_t allocation_of(const void* buffer) {
  const DeviceKind kind = device_kind(buffer);
  DeviceBackend* const backend = kind == DeviceKind::none ? nullptr : device_backend(kind, nullptr);
  return backend != nullptr ? backend->allocation_of(buffer) : 0;
}

bool same(const std::vector<Block>& a, const std::vector<Block>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Block& x, const Block& y) {
    return x.displacement == y.displacement && x.layout == y.layout;
  });
}

bool same(const CollectiveDesc& a, const CollectiveDesc& b) {
  if (a.operation != b.operation || a.in_place != b.in_place || a.own_block != b.own_block ||
      a.root != b.root || a.send != b.send || a.recv != b.recv) {
    return false;
  }
  if ((a.irregular == nullptr) != (b.irregular == nullptr)) return false;
  if (a.irregular == nullptr) {
    return a.send_layout == b.send_layout && a.recv_layout == b.recv_layout;
  }
  return same(a.irregular->send, b.irregular->send) && same(a.irregular->recv, b.irregular->recv);
}

} // namespace

// A buffer of the host has no allocation that is known; one that is not there needs none.
DeviceCalls::Card DeviceCalls::look(const CollectiveDesc& desc) {
  const std::uint64_t send = allocation_of(desc.send);
  const std::uint64_t recv = allocation_of(desc.recv);
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.send == send && call.recv == recv && same(call.desc, desc);
  });
  if (found != calls_.end()) {
    calls_.splice(calls_.begin(), calls_, found);
  } else {
    calls_.emplace_front();
    calls_.front().desc = desc;
    calls_.front().send = send;
    calls_.front().recv = recv;
    if (calls_.size() > kCalls) make_room();
  }
  current_ = &calls_.front();
  const bool known = send + recv != 0 && (desc.send == nullptr || send != 0) &&
                     (desc.recv == nullptr || recv != 0);
  const bool ready = known && !current_->refused && current_->seen >= kBefore;
  ++current_->seen;
  return {current_->number, ready ? 1u : 0u};
}

// The oldest call without a plan: plans go by what all ranks know.
void DeviceCalls::make_room() {
  const auto oldest = std::find_if(
      calls_.rbegin(), calls_.rend(), [](const Call& call) { return call.plan == nullptr; });
  calls_.erase(std::next(oldest).base());
}

DeviceCalls::Decision DeviceCalls::decide(const std::vector<Card>& cards) {
  const std::uint64_t plan = cards.front().plan;
  const bool alike = std::all_of(
      cards.begin(), cards.end(), [plan](const Card& card) { return card.plan == plan; });
  if (alike && plan != 0) {
    std::erase(kept_, plan);
    kept_.push_back(plan);
    return Decision::run;
  }
  const bool ready =
      std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.ready != 0; });
  return alike && ready ? Decision::make : Decision::host;
}

// Ranks that keep theirs find that this one has none.
void DeviceCalls::drop() {
  calls_.clear();
  kept_.clear();
  current_ = nullptr;
}

bool DeviceCalls::keep(std::unique_ptr<PersistentPlan> plan) {
  current_->refused = plan->schedule().path != Path::device;
  if (current_->refused) return false;
  if (kept_.size() == kPlans) {
    for (Call& call : calls_) {
      if (call.number != kept_.front()) continue;
      call.plan.reset();
      call.number = 0;
      call.seen = 0;
    }
    kept_.erase(kept_.begin());
  }
  current_->plan = std::move(plan);
  current_->number = ++made_;
  kept_.push_back(made_);
  return true;
}

} // namespace ferry::core
