// SPDX-License-Identifier: MIT
#include "lib/amd/self_test.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "lib/amd/engine_map.hpp"
#include "lib/amd/patience.hpp"
#include "lib/amd/probe.hpp"
#include "lib/base/clock.hpp"

namespace ferry::amd {
namespace {

constexpr double kSeconds = 50; // for all
constexpr double kTrialSeconds = 2;
constexpr std::uint64_t kShort[] = {8, 4096, 16 * 1024 + 8, 64 * 1024};
constexpr std::uint64_t kLong[] = {4 << 20};
constexpr std::size_t kBytes = 4 << 20;
constexpr std::size_t kRing = 64 * 1024;

// Memory on a GPU for one trial.
class Scratch {
 public:
  Scratch(const Runtime& runtime, int node, std::size_t bytes, MemoryKind kind)
      : runtime_(runtime), base_(runtime.allocate(node, bytes, kind)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { runtime_.release(base_); }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }

 private:
  const Runtime& runtime_;
  std::byte* base_;
};

struct Measured {
  double seconds = 0;
  std::string fault; // empty: none
};

class SelfTest {
 public:
  explicit SelfTest(Devices& devices) : devices_(devices), end_(core::now_seconds() + kSeconds) {}

  std::string run();

 private:
  void line(const char* verdict, const std::string& text) {
    text_ += fmt::format("{} {}\n", verdict, text);
  }
  void attempt(const std::string& layer, const std::function<std::string()>& step);
  void topology();
  void driver();
  void memory(const Gpu& gpu);
  void queues(QueueSource& source);
  void preferred(const Gpu& from, const Gpu& to);
  void pair(QueueSource& source, const Gpu& from, const Gpu& to);
  Measured copy(
      QueueSource& source, SdmaQueue& queue, const Gpu& from, const Gpu& to,
      std::span<const std::uint64_t> sizes);
  [[nodiscard]] bool late() const { return core::now_seconds() > end_; }
  [[nodiscard]] std::vector<const Gpu*> seen() const;

  Devices& devices_;
  double end_;
  std::string text_;
  std::set<std::pair<int, std::uint32_t>> hanging_; // node and engine
};

std::vector<const Gpu*> SelfTest::seen() const {
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : devices_.topology.gpus) {
    if (devices_.runtime.sees(gpu.node)) gpus.push_back(&gpu);
  }
  return gpus;
}

void SelfTest::attempt(const std::string& layer, const std::function<std::string()>& step) {
  if (late()) return line("skip", layer + ": no time is left");
  try {
    line("pass", layer + ": " + step());
  } catch (const core::Failure& failure) {
    const core::Status& status = failure.status();
    line(
        "fail",
        fmt::format(
            "{}: {}{}{}", layer, status.cause, status.remedy.empty() ? "" : "; ", status.remedy));
  }
}

void SelfTest::topology() {
  const auto gpus = seen();
  for (const std::string& hidden : devices_.topology.hidden) {
    line("fail", "topology: " + hidden + "; give this process all of /dev/dri and its cgroup");
  }
  for (const Gpu& gpu : devices_.topology.gpus) {
    if (devices_.runtime.sees(gpu.node)) continue;
    line(
        "fail",
        fmt::format("topology: the ROCm runtime hides {}; unset ROCR_VISIBLE_DEVICES", gpu.name()));
  }
  line("pass", fmt::format("topology: {} GPUs that the ROCm runtime shows", gpus.size()));
  for (const Gpu* const gpu : gpus) {
    const bool known = generation_of(gpu->gfx).has_value();
    line(
        known ? "pass" : "fail",
        fmt::format(
            "{}: {} engines, {} queues in all{}", gpu->name(), gpu->engines(), queue_budget(*gpu),
            known ? "" : "; its packets are not known: only copies by the runtime will do"));
  }
}

void SelfTest::driver() {
  if (devices_.driver == nullptr) {
    return line("fail", "driver: " + devices_.kfd.missing + "; the host will drive the copies");
  }
  const kfd::Version& version = devices_.driver->version();
  const bool chooses = devices_.driver->chooses_engines();
  line(
      chooses ? "pass" : "fail",
      fmt::format(
          "driver: interface {}.{}{}", version.major, version.minor,
          chooses ? ""
                  : "; engines cannot be chosen before 1.17: use a newer kernel or amdgpu-dkms"));
  for (const Gpu* const gpu : seen()) {
    attempt("address space of " + gpu->name(), [&] {
      const bool shared = devices_.driver->node(*gpu).shared();
      return std::string(shared ? "shared with the ROCm runtime" : "own");
    });
  }
}

void SelfTest::memory(const Gpu& gpu) {
  attempt("memory of " + gpu.name(), [&] {
    const Runtime& runtime = devices_.runtime;
    const Scratch there(runtime, gpu.node, kBytes, MemoryKind::device);
    const std::vector<std::uint64_t> sent(kBytes / 8, 0x0123456789abcdefu);
    std::vector<std::uint64_t> back(kBytes / 8);
    const double begin = core::now_seconds();
    runtime.copy(there.base(), sent.data(), kBytes);
    runtime.copy(back.data(), there.base(), kBytes);
    const double seconds = core::now_seconds() - begin;
    if (back != sent) {
      const std::string wrong = "what comes back is not what was sent";
      throw core::Failure(core::Status{core::ErrorKind::other, wrong, {}});
    }
    return fmt::format("{:.1f} GB/s to the GPU and back", 2e-9 * kBytes / seconds);
  });
}

// Words for hardware lie on the GPU, others in memory of the host.
Measured SelfTest::copy(
    QueueSource& source, SdmaQueue& queue, const Gpu& from, const Gpu& to,
    std::span<const std::uint64_t> sizes) {
  const Runtime& runtime = devices_.runtime;
  const Scratch here(runtime, from.node, kBytes, MemoryKind::device);
  const Scratch there(runtime, to.node, kBytes, MemoryKind::device);
  const Scratch words(runtime, from.node, 4096, MemoryKind::uncached);
  if (from.node != to.node) runtime.allow(there.base(), kBytes, from.node, false);
  const auto control = source.provider->control_page(from);
  std::uint64_t bytes = 0;
  for (const std::uint64_t size : sizes) bytes += size;
  std::vector<std::uint64_t> sent(bytes / 8);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = i * 0x9e3779b97f4a7c15u + 1;
  runtime.copy(here.base(), sent.data(), bytes);
  const auto host_words = reinterpret_cast<std::uint64_t>(control.get() + 64);
  const std::uint64_t word = source.provider->in_hardware() ? words.address() : host_words;
  const auto packets = probe_packets(
      source.provider->packets(from),
      {there.address(), here.address(), word, word + 64, control.get(), sizes});
  const device::SingleProducer producer(queue.ring());
  const device::PacketSpan span{packets.data(), packets.size()};
  const double begin = core::now_seconds();
  core::Status status;
  const auto look = [&] {
    status = queue.progress();
    const bool over = !status.ok() || device::load_acquire(control.get()) != 0;
    return over ? core::Poll::ready : core::Poll::pending;
  };
  const bool told = device::submit(producer, &span, 1) &&
                    wait_patiently([&] { return queue.name(); }, kTrialSeconds, look).ok();
  Measured measured{core::now_seconds() - begin, {}};
  if (!told || !status.ok()) {
    queue.give_up();
    hanging_.insert({from.node, queue.engine()});
    measured.fault = status.ok() ? "the engine does not come to an end" : status.cause;
    return measured;
  }
  std::vector<std::uint64_t> back(sent.size());
  runtime.copy(back.data(), there.base(), bytes);
  if (back != sent) measured.fault = "the engine brings wrong bytes";
  return measured;
}

// All engines that the map names; the figures are those of the first.
void SelfTest::pair(QueueSource& source, const Gpu& from, const Gpu& to) {
  const EngineChoice choice =
      from.node == to.node ? engines_to_self(from)
                           : engines_to(from, to, {}, source.provider->preferred_engines(from, to));
  std::vector<std::uint32_t> engines = choice.engines;
  if (!source.provider->chooses_engines()) engines = {kAnyEngine};
  const std::string layer = fmt::format(
      "{} copy of {} to {}", source.provider->name(), from.bus_address(), to.bus_address());
  for (const std::uint32_t engine : engines) {
    const std::string where = engine == kAnyEngine ? "" : fmt::format(", engine {}", engine);
    if (hanging_.contains({from.node, engine})) {
      line("skip", layer + where + ": this engine hangs");
      continue;
    }
    attempt(layer + where, [&]() -> std::string {
      const auto queue = source.provider->create(from, engine, kRing);
      const Measured latency = copy(source, *queue, from, to, kShort);
      const Measured rate = latency.fault.empty() ? copy(source, *queue, from, to, kLong) : latency;
      if (!rate.fault.empty()) {
        throw core::Failure(core::Status{
            core::ErrorKind::other, rate.fault,
            "keep Ferry from it with FERRY_AMD_ENGINES, and look at firmware and dmesg"});
      }
      return fmt::format(
          "{:.0f} us for 4 copies and a signal, {:.1f} GB/s for 4 MiB", 1e6 * latency.seconds,
          1e-9 * kBytes / rate.seconds);
    });
  }
}

// Which engines copies by the runtime take, and why; idle ones are told for people only, since the
// next moment they may be busy.
void SelfTest::preferred(const Gpu& from, const Gpu& to) {
  const HsaApi& api = devices_.runtime.api();
  const std::uint32_t mask = devices_.runtime.engines(api.preferred_engines, from.node, to.node);
  const std::uint32_t idle = devices_.runtime.engines(api.free_engines, from.node, to.node);
  const EngineChoice choice = engines_to(from, to, {}, mask);
  line(
      "info", fmt::format(
                  "hsa engines of {} to {}: {}: {}{}{}", from.bus_address(), to.bus_address(),
                  fmt::join(choice.engines, ", "), choice.why,
                  api.preferred_engines == nullptr ? "; this ROCm runtime cannot tell any" : "",
                  idle != 0 ? fmt::format("; idle now {:#x}", idle) : ""));
}

void SelfTest::queues(QueueSource& source) {
  if (source.provider == nullptr) return line("skip", "kfd copies: there is no driver");
  const auto gpus = seen();
  for (const Gpu* const from : gpus) {
    const std::string refusal = source.provider->refuses(*from);
    if (!refusal.empty()) {
      line(
          "skip",
          fmt::format(
              "{} copies of {}: {}", source.provider->name(), from->bus_address(), refusal));
      continue;
    }
    // By the runtime to one other GPU each: its copies take the same links.
    const auto next = std::find(gpus.begin(), gpus.end(), from) + 1;
    const Gpu* const neighbour = next == gpus.end() ? gpus.front() : *next;
    for (const Gpu* const to : gpus) {
      if (source.provider->in_hardware() || to == neighbour) pair(source, *from, *to);
      if (!source.provider->in_hardware() && to != from) preferred(*from, *to);
    }
  }
}

std::string SelfTest::run() {
  topology();
  driver();
  for (const Gpu* const gpu : seen()) memory(*gpu);
  queues(devices_.kfd);
  queues(devices_.hsa);
  line("skip", "handles between processes: needs two; mpiexec -n 2 ferry-bench --memory device");
  return text_;
}

} // namespace

std::string self_test(Devices& devices) {
  return SelfTest(devices).run();
}

} // namespace ferry::amd
