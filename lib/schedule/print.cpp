// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>

#include "lib/schedule/schedule.hpp"

namespace ferry::core {
namespace {

const char* name_of(Buffer buffer) {
  switch (buffer) {
    case Buffer::send:
      return "send";
    case Buffer::recv:
      return "recv";
    case Buffer::slot:
      return "slot";
    case Buffer::stage:
      return "stage";
  }
  return "?";
}

const char* name_of(SignalKind kind) {
  switch (kind) {
    case SignalKind::ready:
      return "ready";
    case SignalKind::moved:
      return "moved";
    case SignalKind::filled:
      return "filled";
    case SignalKind::drained:
      return "drained";
    case SignalKind::slot:
      return "slot";
  }
  return "?";
}

std::string print(const Place& place) {
  const bool users = place.buffer == Buffer::send || place.buffer == Buffer::recv;
  return users ? fmt::format(
                     "{}@{}[{}]+{}", name_of(place.buffer), place.rank, place.block, place.offset)
               : fmt::format("{}@{}+{}", name_of(place.buffer), place.rank, place.offset);
}

std::string peer_name(int peer) {
  return peer == kEveryone ? std::string("everyone") : fmt::format("rank {}", peer);
}

} // namespace

const char* name_of(Path path) {
  switch (path) {
    case Path::local:
      return "local";
    case Path::slots:
      return "slots";
    case Path::engine:
      return "engine";
    case Path::mpi:
      return "mpi";
    case Path::device:
      return "device";
    case Path::nodes:
      return "nodes";
  }
  return "?";
}

std::string print(const Step& step) {
  switch (step.kind) {
    case StepKind::copy:
      return fmt::format("copy   {} bytes {} -> {}", step.bytes, print(step.from), print(step.to));
    case StepKind::signal:
      return fmt::format("signal {} to {}", name_of(step.signal), peer_name(step.peer));
    case StepKind::await:
      return fmt::format(
          "await  {} from {} number {}", name_of(step.signal), peer_name(step.peer), step.ordinal);
  }
  return "?";
}

std::string print(const Schedule& schedule) {
  std::string text = fmt::format(
      "{} rank {} of {}, path {}: {}\n", name_of(schedule.operation), schedule.rank, schedule.ranks,
      name_of(schedule.path), schedule.why);
  for (std::size_t q = 0; q < schedule.queues.size(); ++q) {
    const StepQueue& queue = schedule.queues[q];
    text += q == 0 ? std::string("queue 0 (calling thread)\n")
                   : fmt::format("queue {} (peer {})\n", q, queue.peer);
    for (const Step& step : queue.steps) text += "  " + print(step) + "\n";
  }
  return text;
}

std::vector<std::uint64_t> Schedule::arrivals() const {
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(kSignalWords * ranks));
  for (const StepQueue& queue : queues) {
    for (const Step& step : queue.steps) {
      if (step.kind != StepKind::await || step.signal == SignalKind::slot) continue;
      auto& count =
          counts[static_cast<std::size_t>(static_cast<int>(step.signal) * ranks + step.peer)];
      count = std::max(count, step.ordinal);
    }
  }
  return counts;
}

} // namespace ferry::core
