// SPDX-License-Identifier: MIT
#include "ring_job.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace ferry::test {

namespace {

constexpr std::size_t kRingBytes = 4096;
constexpr int kMostTurns = 100'000;

template <class Packet, class... Arguments>
Dwords make(
    device::PacketStatus (*build)(Packet&, Arguments...),
    std::type_identity_t<Arguments>... arguments) {
  Packet packet{};
  if (build(packet, arguments...) != device::PacketStatus::ok) {
    throw std::logic_error("the program holds a packet that does not exist");
  }
  return Dwords(std::begin(packet.dw), std::end(packet.dw));
}

} // namespace

RingJob::RingJob(core::ModelSettings settings) : engine(settings) {
  for (std::size_t i = 0; i < kBytes; ++i) {
    source[i] = static_cast<unsigned char>(1 + (i * 7 + settings.seed) % 100);
    second[i] = static_cast<unsigned char>(101 + (i * 11 + settings.seed) % 100);
  }
  const auto window = [this](const void* memory, std::size_t bytes) {
    windows_.add({address(memory), bytes, true, 0, 0, 0, "job"});
  };
  for (const Area* area : {&source, &second, &middle, &sink, &sink2}) window(area, kBytes);
  window(words.data(), sizeof words);
}

RingJob::~RingJob() {
  engine.retire(list_);
}

core::Queue& RingJob::queue(std::size_t number) {
  while (lines_.size() <= number) {
    auto made = std::make_unique<core::Queue>(kRingBytes);
    made->set_id(static_cast<int>(lines_.size()));
    made->set_windows(&windows_);
    windows_.add({address(made->ring().rptr), 8, false, 0, 0, 0, "rptr"});
    list_.push_back(made.get());
    lines_.push_back({std::move(made), 0});
  }
  return *lines_[number].queue;
}

RingJob& RingJob::append(std::size_t number, const Dwords& packet) {
  core::Queue& to = queue(number);
  std::uint64_t& end = lines_[number].end;
  if (end + packet.size() * 4 > kRingBytes) throw std::logic_error("the program is too long");
  std::copy(packet.begin(), packet.end(), to.image() + end / 4);
  end += packet.size() * 4;
  return *this;
}

RingJob& RingJob::copy(
    std::size_t queue, Area& to, const Area& from, std::size_t at, std::size_t bytes) {
  return append(
      queue, make(device::build_copy, address(&to[at]), address(&from[at]), std::uint64_t{bytes}));
}

RingJob& RingJob::add(std::size_t queue, std::uint64_t& word) {
  return append(queue, make(device::build_atomic_add, address(&word), std::uint64_t{1}));
}

RingJob& RingJob::poll(std::size_t queue, const std::uint64_t& word, std::uint64_t reference) {
  return append(queue, make(device::build_poll64, address(&word), reference));
}

RingJob& RingJob::fence(std::size_t queue, std::uint64_t& word) {
  return append(queue, make(device::build_fence, address(&word), std::uint32_t{1}));
}

RingJob& RingJob::write(std::size_t queue, std::uint64_t& word) {
  Dwords packet = make(device::build_write, address(&word), std::uint64_t{1});
  packet.push_back(1);
  return append(queue, packet);
}

RingJob& RingJob::poll_rptr(std::size_t waiter, std::size_t of) {
  return poll(waiter, *queue(of).ring().rptr, lines_[of].end);
}

void RingJob::publish() {
  for (const Line& line : lines_) line.queue->publish(line.end);
  engine.submit(list_);
}

core::QueueState RingJob::run() {
  publish();
  core::QueueState state = core::QueueState::blocked;
  for (int i = 0; i < kMostTurns; ++i) {
    state = turn();
    if (state == core::QueueState::drained || state == core::QueueState::failed) break;
  }
  return state;
}

} // namespace ferry::test
