// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include <mpi.h>

namespace ferry::bench {

// What the ranks of a run agree on, outside of timed code. Every operation is collective and yields
// the core while it waits: with more ranks than cores, a rank that spins inside MPI would take the
// core from ranks that still work in a timed round, and would be measured instead of them.
class Crew {
 public:
  explicit Crew(MPI_Comm comm);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  void barrier() const;
  // Each value becomes the largest one of all ranks: exactly, so all decide alike by it.
  void maximum(std::span<double> values) const;
  [[nodiscard]] std::uint64_t sum(std::uint64_t value) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL; // own, so that nothing meets the collectives that are measured
  int rank_ = 0;
  int size_ = 1;
};

// Ends all ranks, which may be waiting inside a collective that this one has left. What this rank
// has said on stderr is given time to reach the launcher: it ends with what it has forwarded.
[[noreturn]] void end_job(MPI_Comm comm, int status);

} // namespace ferry::bench
