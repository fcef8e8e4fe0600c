// SPDX-License-Identifier: MIT
// One buffer of one rank: its blocks, the memory around them, and what must be in it afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include "../support/pattern.hpp"
#include "calls.hpp"
#include "spelling.hpp"

namespace ferry::test {

// Memory of malloc or of MPI_Alloc_mem, with noise in it that changes.
class Bytes {
 public:
  Bytes(std::size_t size, bool of_mpi);
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes();
  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  unsigned char* data_ = nullptr;
  std::size_t size_;
  bool of_mpi_;
};

// What a rank gives to another, or gets from it.
struct Part {
  std::int64_t elements = 0; // basic ones
  int sender = 0;
  int receiver = kEveryone;
};

struct Spread {
  Basic basic = Basic::byte;
  std::int64_t group = 1; // divides the elements of all parts
  bool empty_types = false;
};

// How the blocks of a call are described: one after the other, with counts and displacements, or
// with a type each.
enum class Placing { regular, counted, typed };

class Side {
 public:
  Side(Dice& dice, const Spread& spread, Placing placing, std::vector<Part> parts);

  [[nodiscard]] void* address() const { return base_; }
  [[nodiscard]] const Vectors& vectors() const { return vectors_; }
  // As soon as a call has taken them.
  void free_types();

  // New noise everywhere, and what is expected is the same.
  void begin(std::uint64_t iteration);
  // Data of `part` in a block: there already, or expected.
  void put(std::size_t index, std::uint64_t iteration, const Part& part);
  void expect(std::size_t index, std::uint64_t iteration, const Part& part);
  // Empty when all bytes are as expected, gaps and surroundings too.
  [[nodiscard]] std::string problem() const;
  // Two blocks with a byte in common: a fault of the test itself.
  [[nodiscard]] bool overlaps() const;

 private:
  struct Block {
    std::size_t type = 0;
    MPI_Count count = 0;
    std::int64_t offset = 0;
  };
  [[nodiscard]] const Spelled& spelled(const Block& block) const { return types_[block.type]; }
  [[nodiscard]] std::int64_t place(const Block& block, std::size_t index) const;
  void add_common_type(Dice& dice, const Spread& spread, Placing placing);
  void place_in_a_row();
  void place_with_displacements(Dice& dice);
  void place_with_types(Dice& dice, const Spread& spread);
  void make_memory(Dice& dice);
  void write(
      unsigned char* base, std::size_t index, std::uint64_t iteration, const Part& part) const;

  std::vector<Part> parts_;
  std::vector<Spelled> types_;
  std::vector<Block> blocks_;
  Vectors vectors_;
  std::unique_ptr<Bytes> memory_;
  std::vector<unsigned char> expected_;
  unsigned char* base_ = nullptr;
};

} // namespace ferry::test
