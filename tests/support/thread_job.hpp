// SPDX-License-Identifier: MIT
// A job in one process: ranks are threads, and the bootstrap goes through memory they all see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/bootstrap.hpp"
#include "lib/exec/communicator.hpp"
#include "lib/exec/set_up.hpp"
#include "lib/topology/topology.hpp"
#include "operands.hpp"
#include "post_office.hpp"

namespace ferry::test {

// Where the ranks of one communicator meet.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}
  [[nodiscard]] int ranks() const { return ranks_; }

  void bring(std::uint64_t round, int rank, const void* data, std::size_t bytes);
  // False as long as a rank has not brought its part.
  [[nodiscard]] bool take(std::uint64_t round, void* all);
  // A rank left while an exchange could still write to its buffer.
  void note_broken_promise();
  [[nodiscard]] int broken_promises() const;
  [[nodiscard]] PostOffice& post_office() { return post_office_; }

 private:
  struct Round {
    std::vector<std::byte> data;
    int brought = 0;
    int taken = 0;
  };

  const int ranks_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Round> rounds_;
  PostOffice post_office_;
  int broken_promises_ = 0;
};

// May change what this rank is told by the others: a fault that only it sees.
using Tamper = std::function<void(int rank, core::RankCard& card)>;

class ThreadBootstrap final : public core::Bootstrap {
 public:
  ThreadBootstrap(std::shared_ptr<Meeting> meeting, int rank, Tamper tamper = {});
  ~ThreadBootstrap() override;

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return meeting_->ranks(); }
  void start_allgather(const void* mine, std::size_t bytes, void* all) override;
  [[nodiscard]] bool test() override;
  [[nodiscard]] std::unique_ptr<core::Exchange> prepare(
      const std::vector<core::ExchangePart>& sends,
      const std::vector<core::ExchangePart>& receives) override;
  void poke() override {}

 private:
  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
  Tamper tamper_;
  std::uint64_t round_ = 0;
  void* all_ = nullptr; // of the exchange under way
  const unsigned char* mine_ = nullptr;
  std::vector<unsigned char> brought_; // what mine_ held when the exchange began
  int exchanges_ = 0; // set up by this rank
};

using Comm = std::shared_ptr<core::Communicator>;
// Plans as with a core for each rank, whatever this machine has.
void roomy(int rank, core::RankCard& card);
// Known to every wait of the process: threads of all ranks drive it. With
// TEST_ROOMY in the environment every one is roomy.
Comm make_comm(
    const std::shared_ptr<Meeting>& meeting, int rank, const std::string& name, Tamper tamper = {});

// What went wrong on any rank. doctest's own checks do not throw in threads.
class Faults {
 public:
  void expect(bool fine, const std::string& text);
  // The first one, "" without any.
  [[nodiscard]] std::string first() const;

 private:
  mutable std::mutex mutex_;
  std::string first_;
};

// Runs body(rank) on a thread for each rank and returns when all have ended; an exception is a
// fault.
void run_ranks(int ranks, Faults& faults, const std::function<void(int rank)>& body);

// A random pause: nothing, a yield, or a short sleep.
void dawdle(std::mt19937_64& random);

// Post and wait. The operation may not be freed before: it is complete when this returns.
[[nodiscard]] core::Status run_blocking(const Comm& comm, const core::CollectiveDesc& desc);

// A non-blocking operation, or a start of a plan.
class InFlight {
 public:
  InFlight(Comm comm, const core::CollectiveDesc& desc);
  InFlight(Comm comm, core::PersistentPlan& plan);
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  [[nodiscard]] bool test();
  [[nodiscard]] core::Status wait();

 private:
  Comm comm_;
  core::LaneOp op_;
  core::PersistentPlan* plan_ = nullptr;
};

// A number of looks that no fault-free step needs, yielding in between.
template <class Look>
[[nodiscard]] bool soon(Look look) {
  constexpr int kLooks = 2'000'000;
  for (int i = 0; i < kLooks; ++i) {
    if (look() == core::Poll::ready) return true;
    std::this_thread::yield();
  }
  return false;
}

// A rank of a team without a communicator, so that its counters can begin anywhere.
struct Bench {
  Bench(const std::shared_ptr<Meeting>& meeting, int rank, const core::BlockLayout& layout);
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench(); // after the last rank has looked into this one's block

  core::Team team;
  ThreadBootstrap bootstrap;
  core::SetUp set_up;
  std::byte* block = nullptr;
  std::vector<std::byte*> blocks; // of all ranks
};

// Bytes of pages that the shared heap of this process holds now.
[[nodiscard]] std::uint64_t heap_bytes();
// Bytes of memory that this process holds now.
[[nodiscard]] std::uint64_t live_bytes();

} // namespace ferry::test
