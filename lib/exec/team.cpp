// SPDX-License-Identifier: MIT
#include "lib/exec/team.hpp"

#include <fmt/format.h>

namespace ferry::core {
namespace {

std::unique_ptr<Engine> make_engine() {
  if (config().engine == EngineChoice::inline_) return make_inline_engine();
  // Every queue of this process belongs to this process: whoever sleeps here is woken.
  const SignalHook wake_self{[](void*, int) { wake(Heap::instance().header(), false); }, nullptr};
  return make_thread_engine(config().engine_threads, wake_self);
}

Engine* installed = nullptr;

} // namespace

// Never destroyed: its threads may run until the process ends.
Engine& process_engine() {
  static Engine* const engine = installed != nullptr ? installed : make_engine().release();
  return *engine;
}

bool install_engine(Engine& engine) {
  installed = &engine;
  return &process_engine() == &engine;
}

Status Team::check_alive() const {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Member& other = members[rank];
    if (!other.watched || is_alive(other.pid, other.start_time)) continue;
    return {
        ErrorKind::peer_died,
        fmt::format("rank {} (process {}) of {} has ended", rank, other.pid, name),
        "look at the output of that rank; this communicator cannot be used any more"};
  }
  return {};
}

} // namespace ferry::core
