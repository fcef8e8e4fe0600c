// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <mpi.h>

#include "../support/communicators.hpp"
#include "calls.hpp"
#include "spelling.hpp"

namespace ferry::test {

// One point of the matrix: the same on all ranks. What may differ between ranks (types, counts,
// places, memory) comes from the seed and the rank.
struct Configuration {
  std::uint64_t seed = 0;
  Form form;
  std::size_t comm = 0; // of the zoo
  int root = 0;
  Basic basic = Basic::byte;
  int reduction = 0;
  std::int64_t elements = 0; // basic ones, of the longest block
  std::int64_t group = 1; // all blocks are multiples of it
  bool empty_types = false; // for blocks without elements: types without bytes, more than 0 of them
};

// Number `index` of a run: all collectives in all forms take turns, the rest is chosen by the seed.
[[nodiscard]] Configuration configuration(std::uint64_t run_seed, std::uint64_t index);
// Elements for blocks of about so many bytes, their groups, and whether empty types come in
// between.
void set_elements(Configuration& c, std::int64_t bytes, Dice& dice);
[[nodiscard]] std::string text_of(const Configuration& c, const Comm& comm);

// Wrong in MPICH 4.0.2 by itself, so left out of runs without the preload library.
[[nodiscard]] bool wrong_below(const Configuration& c, const Comm& comm);

// Buffers of a configuration on this rank, and the call for them.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  // New data before each start.
  virtual void prepare(std::uint64_t iteration) = 0;
  // Empty when the result is right and nothing else was touched.
  [[nodiscard]] virtual std::string problem() const = 0;
  virtual void free_types() {}
  [[nodiscard]] const Call& call() const { return call_; }

 protected:
  Call call_;
};

// The preload library hands operations of the program on to the MPI below, where a persistent
// collective is broken if a persistent message was freed before: the mixtures free such.
[[nodiscard]] bool wrong_beside(const Configuration& c);

[[nodiscard]] std::unique_ptr<Operation> make_operation(const Configuration& c, const Comm& comm);

} // namespace ferry::test
