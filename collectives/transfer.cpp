// SPDX-License-Identifier: MIT
#include "collectives/transfer.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace ferry::core {
namespace {

std::uint64_t chunks_of(std::uint64_t bytes, std::uint64_t chunk) {
  return (bytes + chunk - 1) / chunk;
}

Place advanced(Place place, std::uint64_t bytes) {
  place.offset += bytes;
  return place;
}

// Either side may copy the block by cross-memory attach.
bool may_attach(const PlanInput& input, int from, int to) {
  return input.attach && input.facts_of(from, to).send_plain &&
         input.facts_of(to, from).recv_plain &&
         input.bytes_between(from, to) >= input.limits.attach_from;
}

} // namespace

Step copy_step(Place to, Place from, std::uint64_t bytes) {
  Step step;
  step.kind = StepKind::copy;
  step.to = to;
  step.from = from;
  step.bytes = bytes;
  return step;
}

Step signal_step(SignalKind kind, int peer) {
  Step step;
  step.kind = StepKind::signal;
  step.signal = kind;
  step.peer = peer;
  return step;
}

Step await_step(SignalKind kind, int peer, std::uint64_t ordinal) {
  Step step;
  step.kind = StepKind::await;
  step.signal = kind;
  step.peer = peer;
  step.ordinal = ordinal;
  return step;
}

Route route_between(const PlanInput& input, int from, int to) {
  const BufferFacts& source = input.facts_of(from, to);
  const BufferFacts& target = input.facts_of(to, from);
  const bool push = target.recv_mapped;
  const bool pull = source.send_mapped || may_attach(input, from, to);
  if (input.operation == Operation::broadcast && pull) return Route::pull;
  if (push) return Route::push;
  return pull ? Route::pull : Route::staged;
}

std::uint64_t pushed_share(const PlanInput& input, int to) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t bytes = input.block_bytes;
  if (input.operation != Operation::broadcast || input.irregular()) return 0;
  if (input.limits.share_from == 0 || bytes < input.limits.share_from) return 0;
  if (route_between(input, input.root, to) != Route::pull) return 0;
  const bool push = input.facts_of(to, input.root).recv_mapped || may_attach(input, input.root, to);
  if (!push) return 0;
  return bytes / static_cast<std::uint64_t>(input.ranks) / kPage * kPage;
}

TransferBuilder::TransferBuilder(const PlanInput& input)
    : input_(input),
      moved_(static_cast<std::size_t>(input.ranks)),
      announce_(static_cast<std::size_t>(input.ranks)) {
  schedule_.operation = input.operation;
  schedule_.path = Path::engine;
  schedule_.irregular = input.irregular();
  schedule_.rank = input.rank;
  schedule_.ranks = input.ranks;
  schedule_.queues.push_back({input.rank, {}});
}

std::vector<Step>& TransferBuilder::new_queue(int peer) {
  schedule_.queues.push_back({peer, {}});
  return schedule_.queues.back().steps;
}

Place TransferBuilder::stage_place(int rank, int region, std::uint64_t chunk) const {
  const auto depth = static_cast<std::uint64_t>(input_.limits.stage_depth);
  const std::uint64_t index = static_cast<std::uint64_t>(region) * depth + chunk % depth;
  return {Buffer::stage, rank, 0, index * input_.limits.stage_bytes};
}

void TransferBuilder::note_stage(int region, std::uint64_t bytes) {
  if (bytes == 0) return;
  const auto depth = static_cast<std::uint64_t>(input_.limits.stage_depth);
  const std::uint64_t end = static_cast<std::uint64_t>(region + 1) * depth;
  schedule_.stage_bytes = std::max(schedule_.stage_bytes, end * input_.limits.stage_bytes);
}

void TransferBuilder::push(int peer, Place from, Place to, std::uint64_t bytes) {
  auto& steps = new_queue(peer);
  if (input_.handshake) steps.push_back(await_step(SignalKind::ready, peer, 1));
  if (bytes > 0) steps.push_back(copy_step(to, from, bytes));
  steps.push_back(signal_step(SignalKind::moved, peer));
}

void TransferBuilder::send(int peer, Place from, Place to, std::uint64_t bytes, int region) {
  switch (route_between(input_, input_.rank, peer)) {
    case Route::push:
      ++pushes_;
      push(peer, from, to, bytes);
      return;
    case Route::pull:
      announce_[static_cast<std::size_t>(peer)] = true;
      ++moved_[static_cast<std::size_t>(peer)];
      if (const std::uint64_t share = pushed_share(input_, peer); share > 0) {
        ++shares_;
        push(peer, advanced(from, bytes - share), advanced(to, bytes - share), share);
      }
      return;
    case Route::staged:
      send_staged({peer}, from, bytes, region);
      return;
  }
}

void TransferBuilder::receive(int peer, Place from, Place to, std::uint64_t bytes, int region) {
  switch (route_between(input_, peer, input_.rank)) {
    case Route::push:
      announce_[static_cast<std::size_t>(peer)] = true;
      ++moved_[static_cast<std::size_t>(peer)];
      return;
    case Route::pull: {
      ++pulls_;
      auto& steps = new_queue(peer);
      if (input_.handshake) steps.push_back(await_step(SignalKind::ready, peer, 1));
      const std::uint64_t share = pushed_share(input_, input_.rank);
      if (bytes > share) steps.push_back(copy_step(to, from, bytes - share));
      steps.push_back(signal_step(SignalKind::moved, peer));
      if (share > 0) {
        ++shares_;
        announce_[static_cast<std::size_t>(peer)] = true;
        ++moved_[static_cast<std::size_t>(peer)];
      }
      return;
    }
    case Route::staged: {
      auto& steps = new_queue(peer);
      const std::uint64_t chunk = input_.limits.stage_bytes;
      for (std::uint64_t c = 0; c < chunks_of(bytes, chunk); ++c) {
        const std::uint64_t length = std::min(chunk, bytes - c * chunk);
        steps.push_back(await_step(SignalKind::filled, peer, c + 1));
        steps.push_back(copy_step(advanced(to, c * chunk), stage_place(peer, region, c), length));
        steps.push_back(signal_step(SignalKind::drained, peer));
      }
      return;
    }
  }
}

void TransferBuilder::send_to_all(Place from, int block, std::uint64_t bytes) {
  std::vector<int> staged;
  for (int i = 1; i < input_.ranks; ++i) {
    const int to = (input_.rank + i) % input_.ranks;
    if (route_between(input_, input_.rank, to) == Route::staged) {
      staged.push_back(to);
    } else {
      send(to, from, {Buffer::recv, to, block, 0}, bytes, 0);
    }
  }
  send_staged(staged, from, bytes, 0);
}

void TransferBuilder::send_staged(
    const std::vector<int>& readers, Place from, std::uint64_t bytes, int region) {
  if (readers.empty()) return;
  stages_ += static_cast<int>(readers.size());
  note_stage(region, bytes);
  auto& steps = new_queue(readers.size() == 1 ? readers.front() : input_.rank);
  const std::uint64_t chunk = input_.limits.stage_bytes;
  const auto depth = static_cast<std::uint64_t>(input_.limits.stage_depth);
  const std::uint64_t chunks = chunks_of(bytes, chunk);
  for (std::uint64_t c = 0; c < chunks; ++c) {
    const std::uint64_t length = std::min(chunk, bytes - c * chunk);
    for (int reader : readers) {
      if (c >= depth) steps.push_back(await_step(SignalKind::drained, reader, c - depth + 1));
    }
    steps.push_back(
        copy_step(stage_place(input_.rank, region, c), advanced(from, c * chunk), length));
    for (int reader : readers) steps.push_back(signal_step(SignalKind::filled, reader));
  }
  // The stage is empty again when this rank leaves the epoch: the next plan may use it at once.
  for (int reader : readers) {
    if (chunks > 0) steps.push_back(await_step(SignalKind::drained, reader, chunks));
  }
}

void TransferBuilder::exchange_in_place(int peer, Place block, std::uint64_t bytes) {
  ++stages_;
  note_stage(peer, bytes);
  auto& steps = new_queue(peer);
  const std::uint64_t chunk = input_.limits.stage_bytes;
  const auto depth = static_cast<std::uint64_t>(input_.limits.stage_depth);
  const std::uint64_t chunks = chunks_of(bytes, chunk);
  // A chunk of the block is read into the stage before the peer's chunk takes its place.
  for (std::uint64_t c = 0; c < chunks; ++c) {
    const std::uint64_t length = std::min(chunk, bytes - c * chunk);
    const Place here = advanced(block, c * chunk);
    if (c >= depth) steps.push_back(await_step(SignalKind::drained, peer, c - depth + 1));
    steps.push_back(copy_step(stage_place(input_.rank, peer, c), here, length));
    steps.push_back(signal_step(SignalKind::filled, peer));
    steps.push_back(await_step(SignalKind::filled, peer, c + 1));
    steps.push_back(copy_step(here, stage_place(peer, input_.rank, c), length));
    steps.push_back(signal_step(SignalKind::drained, peer));
  }
  if (chunks > 0) steps.push_back(await_step(SignalKind::drained, peer, chunks));
}

void TransferBuilder::copy_local(Place from, Place to, std::uint64_t bytes) {
  if (bytes > 0) local_.push_back(copy_step(to, from, bytes));
}

std::string TransferBuilder::summary() const {
  std::string routes;
  const auto add = [&](int count, const char* text) {
    if (count > 0) routes += fmt::format("{}{} {}", routes.empty() ? "" : ", ", count, text);
  };
  const bool attach = input_.attach;
  add(pushes_, "pushed into mapped receive buffers");
  add(pulls_, attach ? "pulled (mapped or by cross-memory attach)" : "pulled from mapped buffers");
  add(shares_, "with the root's share pushed");
  add(stages_, "through stage chunks");
  if (routes.empty()) routes = "peers copy, this rank waits";
  return routes;
}

Schedule TransferBuilder::finish() {
  auto& host = schedule_.queues.front().steps;
  for (int i = 1; i < input_.ranks; ++i) {
    const int peer = (input_.rank + i) % input_.ranks;
    if (input_.handshake && announce_[static_cast<std::size_t>(peer)]) {
      host.push_back(signal_step(SignalKind::ready, peer));
    }
  }
  host.insert(host.end(), local_.begin(), local_.end());
  for (int i = 1; i < input_.ranks; ++i) {
    const int peer = (input_.rank + input_.ranks - i) % input_.ranks;
    const std::uint64_t count = moved_[static_cast<std::size_t>(peer)];
    if (count > 0) host.push_back(await_step(SignalKind::moved, peer, count));
  }
  schedule_.why = input_.irregular()
                      ? "blocks of their own sizes, " + summary()
                      : fmt::format("{} bytes a block, {}", input_.block_bytes, summary());
  return std::move(schedule_);
}

} // namespace ferry::core
