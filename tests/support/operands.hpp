// SPDX-License-Identifier: MIT
// One collective as the ranks of a job in one process call it, their buffers, and the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/schedule/collective.hpp"

namespace ferry::test {

// Memory of one buffer, with canaries around it.
enum class Memory { mapped, inside, foreign };

class Guarded {
 public:
  Guarded(Memory memory, std::size_t bytes);
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded();

  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool intact() const;

 private:
  const bool mapped_;
  const std::size_t bytes_;
  unsigned char* base_;
  unsigned char* data_;
};

// One collective as all ranks call it. In place is a matter of the root alone in gather and
// scatter.
struct Call {
  core::Operation operation = core::Operation::alltoall;
  bool in_place = false;
  int root = 0;
  std::size_t bytes = 0; // of one block
  bool uneven = false; // blocks are shorter, or empty, for some pairs; always an exchange
  bool gaps = false; // on odd ranks two thirds of a block's span are somebody else's

  [[nodiscard]] bool exchange() const {
    return uneven || operation == core::Operation::gather || operation == core::Operation::scatter;
  }
};
std::string describe(const Call& call);

// The buffers of one rank for a call, and the oracle for what they hold.
class Operands {
 public:
  Operands(const Call& call, int rank, int ranks, Memory send, Memory recv);

  [[nodiscard]] core::CollectiveDesc desc(core::Form form) const;
  // Outgoing data of this iteration; everything that should come is poisoned.
  void prepare(std::uint64_t iteration);
  // "" when this rank has what it should and nothing else was touched.
  [[nodiscard]] std::string check(std::uint64_t iteration) const;
  // Only the canaries: after calls that did not fit.
  [[nodiscard]] bool intact() const { return send_.intact() && recv_.intact(); }

 private:
  struct Piece { // a block of one side
    int peer = 0;
    std::size_t at = 0;
    std::size_t bytes = 0;
  };
  using Image = std::vector<unsigned char>;

  [[nodiscard]] std::vector<Piece> pieces(bool send) const;
  [[nodiscard]] std::size_t size(bool send) const;
  [[nodiscard]] std::size_t element(std::size_t bytes) const;
  [[nodiscard]] std::size_t span(std::size_t bytes) const;
  [[nodiscard]] core::Layout layout(std::size_t bytes) const;
  [[nodiscard]] bool in_place_here() const;
  void write(Image& image, const Piece& piece, std::uint64_t iteration, int from, int to) const;
  void describe_exchange(core::CollectiveDesc& desc) const;

  Call call_;
  int rank_;
  int ranks_;
  bool gaps_;
  Guarded send_;
  Guarded recv_;
  Image sent_; // what the send buffer holds
  Image expected_; // what the receive buffer holds afterwards
};

} // namespace ferry::test
