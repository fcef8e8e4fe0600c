// SPDX-License-Identifier: MIT
#include "lib/amd/kernel_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/amd/exchange.hpp"
#include "lib/amd/patience.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Status;

constexpr double kSeconds = 4; // for the kernel, which then gives up
constexpr double kMoreSeconds = 1; // until it has told so
constexpr std::uint64_t kShortBlock = 4096 + 8;
constexpr std::uint64_t kLongBlock = 48 * 1024 + 8;

// A word of the block that goes from one rank to another.
std::uint64_t stamp(std::uint64_t from, std::uint64_t to, std::uint64_t at) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
  return (at + 1) * kOdd ^ (from + 1) << 48 ^ (to + 1) << 32;
}

class Trial {
 public:
  Trial(const KernelSetUpInput& input, std::uint64_t block)
      : in_(input),
        ranks_(static_cast<std::uint64_t>(input.team.ranks())),
        me_(static_cast<std::uint64_t>(input.team.rank())),
        words_(block / sizeof(std::uint64_t)) {
    job_.operation = core::Operation::alltoall;
    job_.block_bytes = block;
  }

  Status run() {
    Status status = try_together(in_.team, [&] { make_buffers(); });
    if (!status.ok()) return status;
    KernelSetUpInput input{in_.devices, in_.team, job_, buffers_, in_.nodes, kSeconds};
    const KernelSetUpResult result = set_up_kernels(input);
    if (result.plan == nullptr) return result.status;
    return agree(in_.team, judge(*result.plan)); // before anything of the plan goes
  }

 private:
  void make_buffers() {
    const Runtime& runtime = in_.devices.runtime;
    const std::size_t bytes = ranks_ * words_ * sizeof(std::uint64_t);
    const auto make = [&] {
      const auto release = [&runtime](std::byte* at) { runtime.release(at); };
      return Mapping(runtime.allocate(in_.nodes[me_], bytes, MemoryKind::device), release);
    };
    send_ = make();
    recv_ = make();
    std::vector<std::uint64_t> stamps;
    for (std::uint64_t to = 0; to < ranks_; ++to) {
      for (std::uint64_t at = 0; at < words_; ++at) stamps.push_back(stamp(me_, to, at));
    }
    runtime.copy(send_.get(), stamps.data(), bytes);
    buffers_ = {send_.get(), bytes, recv_.get(), bytes};
  }

  Status judge(KernelPlan& plan) const {
    plan.start();
    const auto look = [&] { return plan.progress(); };
    const Status ended =
        wait_patiently([&] { return plan.missing(); }, kSeconds + kMoreSeconds, look);
    if (!ended.ok()) return {ErrorKind::other, "it does not come to an end", {}};
    if (!plan.status().ok()) return plan.status();
    std::vector<std::uint64_t> seen(ranks_ * words_);
    try {
      in_.devices.runtime.copy(seen.data(), recv_.get(), buffers_.recv_bytes);
    } catch (const core::Failure& failure) {
      return failure.status();
    }
    for (std::uint64_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == stamp(i / words_, me_, i % words_)) continue;
      return {ErrorKind::other, fmt::format("it brings wrong bytes from rank {}", i / words_), {}};
    }
    return {};
  }

  const KernelSetUpInput& in_;
  const std::uint64_t ranks_;
  const std::uint64_t me_;
  const std::uint64_t words_; // of a block
  Job job_;
  Mapping send_;
  Mapping recv_;
  Buffers buffers_;
};

} // namespace

Status try_kernel(const KernelSetUpInput& input) {
  const std::string_view kernel = kernel_of(input);
  std::string key(kernel);
  for (const int node : input.nodes) key += fmt::format(" {}", node);
  key += fmt::format(" of {}", input.team.rank());
  const std::optional<std::string> known = input.devices.kernels.verdict(key);
  // Ranks of several communicators may know different things: who does not know makes all try.
  const Status old = known && !known->empty() ? Status{ErrorKind::other, *known, {}} : Status{};
  Status status = agree(input.team, old);
  const std::vector<char> knowing = gather(input.team, static_cast<char>(known ? 1 : 0));
  const bool all_know = std::find(knowing.begin(), knowing.end(), 0) == knowing.end();
  if (!status.ok() || all_know) return status;
  status = Trial(input, kernel == kWideKernel ? kLongBlock : kShortBlock).run();
  if (!status.ok()) {
    status.cause = fmt::format("the trial of {}: {}", kernel, status.cause);
    status.remedy = "see ferry-info --selftest on this machine";
  }
  input.devices.kernels.remember(key, status.cause);
  return status;
}

} // namespace ferry::amd
