// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "tests/nvidia/process_team.hpp"

namespace ferry::test {

enum class Place { device, host, shareable };

struct Call {
  core::Operation operation = core::Operation::alltoall;
  std::uint64_t bytes = 8; // of a block
  int root = 0;
  bool in_place = false;
  std::uint64_t shift = 0; // of both buffers, from their allocations
  Place place = Place::device;
};

// A buffer in one kind of memory, and its guard bytes in front and behind.
class Memory {
 public:
  Memory(Place place, std::uint64_t bytes, std::uint64_t shift);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] char* get() const;
  void write(const std::vector<unsigned char>& data) const;
  [[nodiscard]] std::vector<unsigned char> read() const;
  [[nodiscard]] bool guards_hold() const;

 private:
  Place place_;
  std::uint64_t bytes_;
  std::uint64_t shift_;
  std::uint64_t total_;
  char* base_ = nullptr;
};

// One call of a rank with its buffers: filled with bytes that no other iteration has, and checked
// against what the operation means, byte by byte.
class Exchange {
 public:
  Exchange(const Call& call, ProcessTeam& team, core::DeviceBackend& backend);
  void fill(std::uint64_t iteration) const;
  [[nodiscard]] std::string check(std::uint64_t iteration) const; // "" or what is wrong
  [[nodiscard]] core::DevicePlan& plan() const { return *plan_; }
  [[nodiscard]] const Memory& send() const { return send_; }
  [[nodiscard]] const Memory& recv() const { return recv_; }
  // Starts it from the host and waits. "" or what is wrong.
  [[nodiscard]] std::string run(std::uint64_t iteration) const;
  // The same without data.
  [[nodiscard]] std::string wait() const;

 private:
  [[nodiscard]] std::uint64_t send_bytes() const;
  [[nodiscard]] std::uint64_t recv_bytes() const;
  [[nodiscard]] core::CollectiveDesc desc() const;

  const Call call_;
  const int rank_;
  const int ranks_;
  Memory send_;
  Memory recv_;
  std::unique_ptr<core::DevicePlan> plan_;
};

} // namespace ferry::test
