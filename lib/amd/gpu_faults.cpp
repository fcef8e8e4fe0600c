// SPDX-License-Identifier: MIT
#include "lib/amd/gpu_faults.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "device/platform.hpp"

namespace ferry::amd {
namespace {

constexpr int kNotMine = 0x1000; // an error: the runtime goes on as without Ferry

struct Watched {
  int node;
  const std::uint64_t* released;
  const std::uint64_t* done;
  [[nodiscard]] bool under_way() const {
    return device::load_acquire(released) > device::load_acquire(done);
  }
};

} // namespace

struct GpuFaults::State {
  std::map<std::uint64_t, int> nodes; // by agent
  std::atomic<std::uint64_t> total{0};
  std::mutex mutex;
  std::map<int, GpuFault> last;
  std::vector<Watched> watched;
};

GpuFaults::GpuFaults(const Runtime& runtime) : state_(new State) {
  state_->nodes = runtime.nodes();
  const auto listen = runtime.api().on_event;
  if (listen != nullptr) (void)listen(&GpuFaults::report, state_);
}

// By a thread of the runtime.
int GpuFaults::report(const hsa::Event* event, void* state) {
  State& all = *static_cast<State*>(state);
  const auto node = all.nodes.find(event->agent.handle);
  const bool known = event->type == hsa::kMemoryFault || event->type == hsa::kHardwareException;
  if (!known || node == all.nodes.end()) return kNotMine;
  const std::lock_guard lock(all.mutex);
  GpuFault& last = all.last[node->second];
  ++last.number;
  last.address = event->type == hsa::kMemoryFault ? event->address : 0;
  all.total.fetch_add(1, std::memory_order_release); // pairs with the acquire in total()
  for (const Watched& watched : all.watched) {
    if (watched.node == node->second && watched.under_way()) return 0;
  }
  return kNotMine;
}

GpuFault GpuFaults::last(int node) const {
  const std::lock_guard lock(state_->mutex);
  return state_->last[node];
}

std::uint64_t GpuFaults::total() const {
  return state_->total.load(std::memory_order_acquire);
}

void GpuFaults::watch(int node, const std::uint64_t* released, const std::uint64_t* done) {
  const std::lock_guard lock(state_->mutex);
  state_->watched.push_back({node, released, done});
}

void GpuFaults::forget(const std::uint64_t* released) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(
      state_->watched, [&](const Watched& watched) { return watched.released == released; });
}

} // namespace ferry::amd
