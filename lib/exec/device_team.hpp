// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/exec/team.hpp"

namespace ferry::core {

// The ranks of a shared team, for a backend. Lives as long as the plan that was made with it.
class SharedDeviceTeam final : public DeviceTeam {
 public:
  using Gather = std::function<void(const void* mine, std::size_t bytes, void* all)>;

  SharedDeviceTeam(Team& team, Gather gather) : team_(team), gather_(std::move(gather)) {}
  ~SharedDeviceTeam() override;

  [[nodiscard]] int rank() const override { return team_.rank(); }
  [[nodiscard]] int ranks() const override { return team_.ranks(); }
  [[nodiscard]] const std::string& name() const override { return team_.name; }
  void allgather(const void* mine, std::size_t bytes, void* all) override {
    gather_(mine, bytes, all);
  }
  void share(std::size_t bytes) override;
  [[nodiscard]] std::byte* block(int rank) const override {
    const std::size_t last = all_blocks_.size() - static_cast<std::size_t>(ranks());
    return all_blocks_[last + static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Status check_alive() const override { return team_.check_alive(); }

 private:
  Team& team_;
  Gather gather_;
  std::vector<std::byte*> all_blocks_; // by rank, of every share()
};

} // namespace ferry::core
