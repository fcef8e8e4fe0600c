// SPDX-License-Identifier: MIT
#include "lib/amd/backend.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "lib/amd/exchange.hpp"
#include "lib/amd/kernel_setup.hpp"
#include "lib/amd/kernel_trial.hpp"
#include "lib/amd/selection.hpp"
#include "lib/amd/self_test.hpp"
#include "lib/amd/staging_plan.hpp"
#include "lib/config/config.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Failure;
using core::Status;

constexpr int kNoNode = -1;

// What a rank tells about its call before anything is decided.
struct CallCard {
  std::uint64_t block_bytes = 0;
  std::int32_t operation = 0;
  std::int32_t in_place = 0;
  std::int32_t root = 0;
  std::int32_t unequal = 0;
  std::int32_t node = kNoNode; // of the GPU that holds all its buffers
  char bus_address[24] = {};
};

// One make_plan().
class Planner {
 public:
  Planner(
      Devices& devices, const BackendOptions& options, const core::CollectiveDesc& desc,
      core::DeviceTeam& team)
      : devices_(devices), options_(options), desc_(desc), team_(team) {}

  std::unique_ptr<core::DevicePlan> run();

 private:
  void exchange_calls();
  [[nodiscard]] int node_of_buffers() const;
  [[nodiscard]] bool job_of_nothing() const {
    return buffers_.send == nullptr && buffers_.recv == nullptr;
  }
  [[nodiscard]] Status all_on_gpus() const;
  [[nodiscard]] Status hidden_peer() const;
  [[nodiscard]] bool allowed(PathChoice path) const {
    return options_.path == PathChoice::automatic || options_.path == path;
  }
  std::unique_ptr<core::DevicePlan> on_queues(PathChoice path, QueueSource& source);
  [[nodiscard]] Status kernels_work();
  std::unique_ptr<core::DevicePlan> on_kernels();
  std::unique_ptr<core::DevicePlan> on_gpus();
  void tell_failed(const char* path, const Status& status);

  Devices& devices_;
  const BackendOptions& options_;
  const core::CollectiveDesc& desc_;
  core::DeviceTeam& team_;
  std::optional<JobPlan> job_;
  Buffers buffers_;
  std::vector<CallCard> cards_;
  std::string tried_; // and did not work
};

// All of the buffers on one GPU, or none. A rank that has nothing to send or receive still names
// its GPU by the pointers that it passes.
int Planner::node_of_buffers() const {
  int node = kNoNode;
  std::vector<const void*> used{buffers_.send, buffers_.recv};
  if (job_of_nothing()) used = {desc_.send, desc_.recv};
  for (const void* buffer : used) {
    if (buffer == nullptr) continue;
    const auto found = devices_.runtime.find(buffer);
    if (!found || (node != kNoNode && found->node != node)) return kNoNode;
    node = found->node;
  }
  return node;
}

void Planner::exchange_calls() {
  CallCard mine;
  Job job;
  const Status status = try_together(team_, [&] {
    job = job_of(desc_, team_.rank());
    buffers_ = buffers_of(desc_, team_.rank(), team_.ranks());
    mine.block_bytes = job.block_bytes;
    mine.operation = static_cast<std::int32_t>(job.operation);
    mine.in_place = job.in_place ? 1 : 0;
    mine.root = job.root;
    mine.unequal = job.unequal() ? 1 : 0;
    mine.node = node_of_buffers();
    const Gpu* const gpu = devices_.topology.by_node(mine.node);
    const std::string address = gpu != nullptr ? gpu->bus_address() : "?";
    std::memcpy(mine.bus_address, address.data(), std::min<std::size_t>(address.size(), 23));
  });
  if (!status.ok()) throw Failure(status);
  cards_ = gather(team_, mine);
  const auto differs = [&](const CallCard& card) {
    const CallCard& first = cards_.front();
    return card.block_bytes != first.block_bytes || card.operation != first.operation ||
           card.in_place != first.in_place || card.root != first.root ||
           card.unequal != first.unequal;
  };
  const auto other = std::find_if(cards_.begin(), cards_.end(), differs);
  if (other != cards_.end()) {
    throw Failure(
        ErrorKind::mismatch,
        fmt::format("rank {} and rank 0 make different calls", other - cards_.begin()),
        "make the same call with matching counts and types on every rank");
  }
  if (job.unequal()) meet(team_, job.pairs);
  job_.emplace(job, team_.rank(), team_.ranks());
}

Status Planner::all_on_gpus() const {
  for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
    if (cards_[rank].node != kNoNode) continue;
    return {
        ErrorKind::other, fmt::format("the buffers of rank {} are not all on one GPU", rank), {}};
  }
  return {};
}

Status Planner::hidden_peer() const {
  for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
    const int node = cards_[rank].node;
    const bool listed = devices_.topology.by_node(node) != nullptr;
    if (listed && devices_.runtime.sees(node)) continue;
    const PeerGpu peer{static_cast<int>(rank), node, cards_[rank].bus_address};
    const Hidden hidden = why_hidden(peer, options_.blinds, listed);
    return {ErrorKind::other, hidden.cause, hidden.remedy};
  }
  return {};
}

std::unique_ptr<core::DevicePlan> Planner::on_queues(PathChoice path, QueueSource& source) {
  if (!allowed(path)) return nullptr;
  Status status = agree(
      team_, source.provider == nullptr ? Status{ErrorKind::other, source.missing, {}} : Status{});
  if (status.ok()) {
    SetUpInput input{devices_, source, team_, *job_, buffers_, {}, options_.set_up};
    for (const CallCard& card : cards_) input.nodes.push_back(card.node);
    SetUpResult result = set_up_sdma(input);
    if (result.plan != nullptr) {
      result.plan->tell_why(tried_);
      return std::move(result.plan);
    }
    status = result.status;
  }
  tell_failed(path == PathChoice::kfd ? "kfd" : "hsa", status);
  return nullptr;
}

void Planner::tell_failed(const char* path, const Status& status) {
  tried_ += fmt::format(
      "; not {}: {}{}{}", path, status.cause, status.remedy.empty() ? "" : ": ", status.remedy);
}

// Alike on all ranks.
Status Planner::kernels_work() {
  const int node = cards_[static_cast<std::size_t>(team_.rank())].node;
  const std::string refusal = kernels_refuse(devices_, job_->job(), node, team_.ranks());
  return agree(team_, refusal.empty() ? Status{} : Status{ErrorKind::other, refusal, {}});
}

std::unique_ptr<core::DevicePlan> Planner::on_kernels() {
  KernelSetUpInput input{devices_, team_, job_->job(), buffers_, {}, core::config().timeout};
  for (const CallCard& card : cards_) input.nodes.push_back(card.node);
  KernelSetUpResult result;
  result.status = try_kernel(input);
  if (result.status.ok()) result = set_up_kernels(input);
  if (result.plan != nullptr) {
    result.plan->tell_why(tried_);
    return std::move(result.plan);
  }
  tell_failed("kernels", result.status);
  return nullptr;
}

// Kernels where they are faster, else copy engines, and kernels again where those do not work.
std::unique_ptr<core::DevicePlan> Planner::on_gpus() {
  if (job_->job().unequal()) {
    if (auto plan = on_queues(PathChoice::kfd, devices_.kfd)) return plan;
    return on_queues(PathChoice::hsa, devices_.hsa);
  }
  const Status kernels =
      allowed(PathChoice::kernels) ? kernels_work() : Status{ErrorKind::other, {}, {}};
  const Selection selection =
      select_path(job_->job().operation, job_->job().block_bytes, kernels.ok());
  tried_ = "; " + selection.why;
  const bool wanted = select_path(job_->job().operation, job_->job().block_bytes, true).kernels;
  if (wanted && !kernels.ok() && allowed(PathChoice::kernels)) tell_failed("kernels", kernels);
  const bool first = kernels.ok() && (selection.kernels || options_.path == PathChoice::kernels);
  if (first) {
    if (auto plan = on_kernels()) return plan;
  }
  if (auto plan = on_queues(PathChoice::kfd, devices_.kfd)) return plan;
  if (kernels.ok() && !first) {
    if (auto plan = on_kernels()) return plan;
  }
  return on_queues(PathChoice::hsa, devices_.hsa);
}

std::unique_ptr<core::DevicePlan> Planner::run() {
  exchange_calls();
  Status reachable = all_on_gpus(); // alike on all ranks
  if (reachable.ok()) reachable = agree(team_, hidden_peer());
  if (reachable.ok()) {
    if (auto plan = on_gpus()) return plan;
  } else {
    tried_ = fmt::format("; {}: {}", reachable.cause, reachable.remedy);
  }
  if (job_->job().unequal()) {
    throw Failure(
        ErrorKind::other, fmt::format("no copy engines for blocks of their own sizes{}", tried_),
        "the host carries them");
  }
  if (!allowed(PathChoice::staging)) {
    throw Failure(
        ErrorKind::configuration,
        fmt::format("the path that FERRY_AMD_PATH demands fails{}", tried_),
        "set FERRY_AMD_PATH=auto");
  }
  return std::make_unique<StagingPlan>(
      devices_.runtime, team_, *job_, buffers_, options_.stage_chunk,
      fmt::format(
          "{} bytes a block through memory of the host{}", job_->job().block_bytes, tried_));
}

} // namespace

AmdBackend::AmdBackend(System& system, const HsaApi& hsa, const HipApi& hip, BackendOptions options)
    : devices_(system, hsa, hip), options_(std::move(options)) {}

bool AmdBackend::owns(const void* pointer) noexcept {
  return devices_.runtime.owns(pointer);
}

void AmdBackend::copy(void* to, const void* from, std::size_t bytes) {
  devices_.runtime.copy(to, from, bytes);
}

std::uint64_t AmdBackend::allocation_of(const void* pointer) noexcept {
  const auto found = devices_.runtime.find(pointer);
  return found ? found->id : 0;
}

std::unique_ptr<core::DevicePlan> AmdBackend::make_plan(
    const core::CollectiveDesc& desc, core::DeviceTeam& team) {
  return Planner(devices_, options_, desc, team).run();
}

std::string AmdBackend::describe() {
  std::string text;
  for (const Gpu& gpu : devices_.topology.gpus) {
    text += fmt::format(
        "{}: {} + {} SDMA engines, {} queues each{}\n", gpu.name(), gpu.host_engines,
        gpu.xgmi_engines, gpu.queues_per_engine,
        devices_.runtime.sees(gpu.node) ? "" : "; hidden by the ROCm runtime");
  }
  for (const std::string& hidden : devices_.topology.hidden) text += hidden + "\n";
  if (devices_.driver != nullptr) {
    const kfd::Version& version = devices_.driver->version();
    text += fmt::format(
        "queues by the kernel (KFD {}.{}): {}\n", version.major, version.minor,
        devices_.driver->chooses_engines() ? "on engines of choice" : "the kernel picks engines");
  } else {
    text += fmt::format("no queues by the kernel: {}\n", devices_.kfd.missing);
  }
  return text;
}

std::string AmdBackend::self_test() {
  return amd::self_test(devices_);
}

BackendOptions options_of_environment() {
  BackendOptions options;
  const core::Config& config = core::config();
  options.path = static_cast<PathChoice>(config.amd_path);
  options.stage_chunk = config.stage_bytes;
  options.set_up.max_packet_bytes = config.max_packet_bytes;
  options.blinds = blinds_of_environment();
  for (std::uint32_t engine = 0; engine < 32; ++engine) {
    const bool named = (static_cast<std::uint32_t>(config.amd_engines) >> engine & 1) != 0;
    if (config.amd_engines != 0 && !named) options.set_up.barred.insert(engine);
  }
  return options;
}

} // namespace ferry::amd
