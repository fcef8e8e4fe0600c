// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/nvidia/owners.hpp"
#include "lib/nvidia/stream_words.hpp"
#include "lib/nvidia/wiring.hpp"

namespace ferry::nvidia {

// What all plans whose work is queued on streams have in common: starts from the host on a stream
// of their own, starts on the program's streams, starts armed ahead, and the end of waits.
class StreamPlan : public core::DevicePlan {
 public:
  StreamPlan(const Blocks& blocks, Wiring wiring, core::DeviceTeam& team);
  ~StreamPlan() override;

  void start() final;
  void start_on_stream(void* stream) final;
  [[nodiscard]] core::Poll progress() final;
  [[nodiscard]] const core::Status& status() const final { return status_; }
  [[nodiscard]] std::string missing() const final;

  // On a stream of the plan, each behind a wait for the word of the handle.
  [[nodiscard]] device::StartHandle arm(int starts) final;

 protected:
  // Queues one start on the stream; what it forks off joins the stream again.
  virtual void enqueue(hipStream_t stream) = 0;
  // Side streams of a start: they begin behind the stream, and end before it goes on. Made in
  // advance, since a stream that is captured allows no others to be made.
  void make_sides(std::size_t number);
  void fork(hipStream_t stream);
  void join(hipStream_t stream);
  [[nodiscard]] hipStream_t side(std::size_t i) const { return queues_->sides[i].get(); }
  [[nodiscard]] Patience patience() const;

  const Blocks blocks_;
  Wiring wiring_;
  StreamWords stream_words_;

 private:
  // What queued work uses beside the wiring.
  struct Queues {
    Control control;
    DeviceBlock done; // the word of control for kernels, which look at device memory sooner
    std::vector<Stream> sides;
    std::vector<Event> ended; // of each side
    Event forked;
    Event last; // of the program's stream
    Stream own;
  };

  void follow_default_stream();
  void note_released();
  [[nodiscard]] bool busy() const;
  [[nodiscard]] bool look_after_stream();
  void settle();
  void fail(core::Status status);

  core::DeviceTeam& team_;
  std::unique_ptr<Queues> queues_;
  std::uint64_t started_ = 0;
  std::uint64_t armed_ = 0;
  std::uint32_t looks_ = 0;
  bool on_stream_ = false;
  bool watched_ = false;
  core::Status status_;
};

// Blocks go straight into the peers' memory.
[[nodiscard]] std::unique_ptr<StreamPlan> make_direct_plan(
    const Blocks& blocks, Wiring wiring, core::DeviceTeam& team);
// Blocks go through host memory that all ranks share.
[[nodiscard]] std::unique_ptr<core::DevicePlan> make_staged_plan(
    const Blocks& blocks, Wiring wiring, core::DeviceTeam& team);

} // namespace ferry::nvidia
