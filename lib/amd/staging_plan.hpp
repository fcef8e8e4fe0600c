// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/amd/program.hpp"
#include "lib/amd/runtime.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

// A collective through memory of the host, for ranks whose GPUs cannot reach each other, or that
// have their blocks in memory of the host. Every block goes chunk by chunk through two chunks in
// turn, which lie in the memory that its sender shares; the caller's thread makes all copies, in
// progress().
class StagingPlan final : public core::DevicePlan {
 public:
  // Collective over the team, which outlives the plan. Throws Failure.
  StagingPlan(
      const Runtime& runtime, core::DeviceTeam& team, const JobPlan& job, const Buffers& buffers,
      std::uint64_t chunk_bytes, std::string why);

  void start() override;
  void start_on_stream(void* stream) override;
  [[nodiscard]] core::Poll progress() override;
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override;
  [[nodiscard]] std::string explain() const override { return why_; }

 private:
  [[nodiscard]] bool sends(int rank) const;
  [[nodiscard]] std::uint64_t* filled(int writer) const;
  [[nodiscard]] std::uint64_t* drained(int writer, int reader) const;
  [[nodiscard]] std::byte* chunk(int writer, int reader, std::uint64_t round) const;
  [[nodiscard]] std::uint64_t length(std::uint64_t round) const;
  [[nodiscard]] bool may_write() const;
  void write_round();
  bool read_round(int writer);
  void copy_own();
  void move();
  static void run_on_stream(void* self);

  const Runtime& runtime_;
  core::DeviceTeam& team_;
  Job job_;
  int me_;
  int ranks_;
  Buffers buffers_;
  std::uint64_t chunk_;
  std::uint64_t rounds_; // of an epoch
  std::uint64_t base_ = 0; // rounds of epochs that are over
  std::uint64_t epoch_ = 0;
  std::uint64_t written_ = 0; // rounds of this epoch
  std::vector<std::uint64_t> got_; // by writer
  bool running_ = false;
  std::string why_;
  core::Status status_;
};

} // namespace ferry::amd
