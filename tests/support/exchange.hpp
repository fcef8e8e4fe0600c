// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <ferry/ferry.h>
#include <mpi.h>

#include "buffer.hpp"
#include "communicators.hpp"
#include "pattern.hpp"
#include "types.hpp"

namespace ferry::test {

enum class Operation { alltoall, allgather, bcast };
enum class Form { blocking, nonblocking, persistent };

inline const char* name_of(Operation op) {
  return op == Operation::alltoall    ? "alltoall"
         : op == Operation::allgather ? "allgather"
                                      : "bcast";
}
inline const char* name_of(Form form) {
  return form == Form::blocking      ? "blocking"
         : form == Form::nonblocking ? "nonblocking"
                                     : "persistent";
}

// What one call moves, as the test sees it; bytes is the size of one block.
struct Shape {
  Operation op = Operation::alltoall;
  std::size_t bytes = 0;
  bool in_place = false;
  int root = 0;
  std::size_t width = 1; // widest element type wanted
  Spelling send_as = Spelling::plain;
  Spelling recv_as = Spelling::plain;
  TypedCount ignored{0, MPI_DATATYPE_NULL}; // send arguments that in-place must not look at
};

// One call on two views: arguments, data before it, and the oracle after it.
class Exchange {
 public:
  Exchange(
      const Shape& shape, const Comm& comm, Memory memory, const Arena& send, const Arena& recv)
      : shape_(shape),
        comm_(comm.get()),
        rank_(comm.rank()),
        size_(comm.size()),
        send_(send.view(memory, send_bytes(shape, comm))),
        recv_(recv.view(memory, recv_bytes(shape, comm))) {
    sent_ = shape.in_place ? shape.ignored : types_.spell(shape.bytes, shape.width, shape.send_as);
    received_ = types_.spell(shape.bytes, shape.width, shape.recv_as);
  }

  void free_types() { types_.free(); }
  [[nodiscard]] const View& send() const { return send_; }
  [[nodiscard]] const View& recv() const { return recv_; }

  // Poison in both buffers, as they lie between init and the first start.
  void spoil(std::uint64_t iteration) const {
    poison(send_.data(), send_.bytes(), iteration);
    poison(recv_.data(), recv_.bytes(), iteration);
  }

  void prepare(std::uint64_t iteration) const {
    poison(recv_.data(), recv_.bytes(), iteration);
    if (shape_.op == Operation::bcast) {
      if (rank_ == shape_.root) fill(recv_.data(), shape_.bytes, {iteration, rank_, kEveryone});
      return;
    }
    if (shape_.op == Operation::allgather) {
      const std::size_t own = static_cast<std::size_t>(rank_) * shape_.bytes;
      unsigned char* at = shape_.in_place ? recv_.data() + own : send_.data();
      fill(at, shape_.bytes, {iteration, rank_, kEveryone});
      return;
    }
    unsigned char* at = shape_.in_place ? recv_.data() : send_.data();
    for (int j = 0; j < size_; ++j, at += shape_.bytes) {
      fill(at, shape_.bytes, {iteration, rank_, j});
    }
  }

  int call(Form form, ferry_request* request) const {
    const void* from = shape_.in_place ? MPI_IN_PLACE : send_.data();
    void* to = recv_.data();
    switch (shape_.op) {
      case Operation::alltoall:
        return alltoall(form, from, to, request);
      case Operation::allgather:
        return allgather(form, from, to, request);
      case Operation::bcast:
        break;
    }
    return bcast(form, to, request);
  }

  // "" when receive data, send data and canaries are as they must be after the call.
  [[nodiscard]] std::string verify(std::uint64_t iteration) const {
    if (!send_.canaries_intact()) return "canary of the send buffer overwritten";
    if (!recv_.canaries_intact()) return "canary of the receive buffer overwritten";
    const int sources = shape_.op == Operation::bcast ? 1 : size_;
    for (int j = 0; j < sources; ++j) {
      const int sender = shape_.op == Operation::bcast ? shape_.root : j;
      const int receiver = shape_.op == Operation::alltoall ? rank_ : kEveryone;
      const auto wrong = first_difference(
          recv_.data() + static_cast<std::size_t>(j) * shape_.bytes, shape_.bytes,
          {iteration, sender, receiver});
      if (wrong)
        return "block of rank " + std::to_string(sender) + " wrong from byte " +
               std::to_string(*wrong) + " of " + std::to_string(shape_.bytes);
    }
    return verify_send(iteration);
  }

 private:
  static std::size_t send_bytes(const Shape& shape, const Comm& comm) {
    if (shape.in_place || shape.op == Operation::bcast) return 0;
    if (shape.op == Operation::allgather) return shape.bytes;
    return shape.bytes * static_cast<std::size_t>(comm.size());
  }
  static std::size_t recv_bytes(const Shape& shape, const Comm& comm) {
    if (shape.op == Operation::bcast) return shape.bytes;
    return shape.bytes * static_cast<std::size_t>(comm.size());
  }

  [[nodiscard]] std::string verify_send(std::uint64_t iteration) const {
    if (shape_.op == Operation::bcast || shape_.in_place) return "";
    const bool per_rank = shape_.op == Operation::alltoall;
    for (int j = 0; j < (per_rank ? size_ : 1); ++j) {
      const unsigned char* at = send_.data() + static_cast<std::size_t>(j) * shape_.bytes;
      if (first_difference(at, shape_.bytes, {iteration, rank_, per_rank ? j : kEveryone})) {
        return "send buffer changed";
      }
    }
    return "";
  }

  int alltoall(Form form, const void* from, void* to, ferry_request* request) const {
    const auto [sn, st] = sent_;
    const auto [rn, rt] = received_;
    if (form == Form::blocking) return ferry_alltoall(from, sn, st, to, rn, rt, comm_);
    if (form == Form::nonblocking) return ferry_ialltoall(from, sn, st, to, rn, rt, comm_, request);
    return ferry_alltoall_init(from, sn, st, to, rn, rt, comm_, MPI_INFO_NULL, request);
  }
  int allgather(Form form, const void* from, void* to, ferry_request* request) const {
    const auto [sn, st] = sent_;
    const auto [rn, rt] = received_;
    if (form == Form::blocking) return ferry_allgather(from, sn, st, to, rn, rt, comm_);
    if (form == Form::nonblocking)
      return ferry_iallgather(from, sn, st, to, rn, rt, comm_, request);
    return ferry_allgather_init(from, sn, st, to, rn, rt, comm_, MPI_INFO_NULL, request);
  }
  int bcast(Form form, void* to, ferry_request* request) const {
    const auto [n, type] = rank_ == shape_.root ? sent_ : received_;
    if (form == Form::blocking) return ferry_bcast(to, n, type, shape_.root, comm_);
    if (form == Form::nonblocking) return ferry_ibcast(to, n, type, shape_.root, comm_, request);
    return ferry_bcast_init(to, n, type, shape_.root, comm_, MPI_INFO_NULL, request);
  }

  Shape shape_;
  MPI_Comm comm_;
  int rank_;
  int size_;
  View send_;
  View recv_;
  Types types_;
  TypedCount sent_;
  TypedCount received_;
};

} // namespace ferry::test
