// SPDX-License-Identifier: MIT
// What ferry.hpp makes of its arguments: descriptions of calls for ferry.h, with every span
// checked.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <ferry/ferry.h>
#include <ferry/buffers.hpp>
#include <ferry/handles.hpp>

namespace ferry {

/// Blocks of a buffer, one for each rank: counts[i] elements from element displs[i] on.
struct Blocks {
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displs;

  /// One behind the other.
  [[nodiscard]] static Blocks packed(std::vector<MPI_Count> counts) {
    Blocks blocks;
    MPI_Aint at = 0;
    for (const MPI_Count count : counts) {
      blocks.displs.push_back(at);
      at += static_cast<MPI_Aint>(count);
    }
    blocks.counts = std::move(counts);
    return blocks;
  }
};

/// What a reduction does to the elements of all ranks.
enum class Op { sum, product, min, max, bit_and, bit_or, bit_xor };

/// Element types of reductions; bits are those of integers only, and complex numbers have no order.
template <class T>
concept Number = (std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                  !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                  !std::same_as<T, char16_t> && !std::same_as<T, char32_t>) ||
                 std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>> ||
                 std::same_as<T, std::complex<long double>>;

/// A buffer to receive a result into, and one to give an operand for it.
template <class R>
concept ResultBuffer = RecvBuffer<R> && Number<std::ranges::range_value_t<R>>;
template <class R, class S>
concept ResultBufferFor = ResultBuffer<R> && RecvBufferFor<R, S>;

namespace detail {

[[nodiscard]] inline MPI_Op op_of(Op op) {
  switch (op) {
    case Op::sum:
      return MPI_SUM;
    case Op::product:
      return MPI_PROD;
    case Op::min:
      return MPI_MIN;
    case Op::max:
      return MPI_MAX;
    case Op::bit_and:
      return MPI_BAND;
    case Op::bit_or:
      return MPI_BOR;
    case Op::bit_xor:
      return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

// A call with the arrays that it points to. Moving it leaves them where they are.
struct BlocksCall {
  ferry_call call{};
  Blocks send;
  Blocks recv;
};

// Describes the calls of one rank of a communicator. Throws Error for spans that do not fit.
class Calls {
 public:
  explicit Calls(MPI_Comm comm) : comm_(comm) {
    if (comm == MPI_COMM_NULL) throw Error(MPI_ERR_COMM, "Communicator: MPI_COMM_NULL");
    int inter = 0;
    MPI_Comm_test_inter(comm, &inter);
    if (inter != 0) throw Error(MPI_ERR_COMM, "Communicator: an inter-communicator");
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }

  [[nodiscard]] ferry_call alltoall(auto& send, auto& recv) const {
    const std::size_t each = block("alltoall: send", std::ranges::size(send));
    fits("alltoall", std::ranges::size(send), std::ranges::size(recv));
    return describe(FERRY_ALLTOALL, send, recv, each);
  }
  [[nodiscard]] ferry_call alltoall(auto& buffer) const {
    return describe(FERRY_ALLTOALL, buffer, block("alltoall: buffer", std::ranges::size(buffer)));
  }
  [[nodiscard]] ferry_call allgather(auto& send, auto& recv) const {
    const std::size_t each = std::ranges::size(send);
    fits("allgather", each * ranks(), std::ranges::size(recv));
    return describe(FERRY_ALLGATHER, send, recv, each);
  }
  [[nodiscard]] ferry_call allgather(auto& buffer) const {
    return describe(FERRY_ALLGATHER, buffer, block("allgather: buffer", std::ranges::size(buffer)));
  }
  [[nodiscard]] ferry_call broadcast(auto& buffer, int root) const {
    return rooted(describe(FERRY_BCAST, buffer, std::ranges::size(buffer)), root);
  }
  [[nodiscard]] ferry_call gather(auto& send, auto& recv, int root) const {
    const std::size_t each = std::ranges::size(send);
    if (rank_ == root) fits("gather", each * ranks(), std::ranges::size(recv));
    return rooted(describe(FERRY_GATHER, send, recv, each), root);
  }
  [[nodiscard]] ferry_call scatter(auto& send, auto& recv, int root) const {
    std::size_t each = std::ranges::size(recv);
    if (rank_ == root) {
      each = block("scatter: send", std::ranges::size(send));
      fits("scatter", each, std::ranges::size(recv));
    }
    return rooted(describe(FERRY_SCATTER, send, recv, each), root);
  }
  [[nodiscard]] ferry_call barrier() const { return describe(FERRY_BARRIER); }

  [[nodiscard]] BlocksCall alltoallv(
      auto& send, const Blocks& out, auto& recv, const Blocks& in) const {
    BlocksCall made{describe(FERRY_ALLTOALLV, send, recv, 0), {}, {}};
    set_send(made, "alltoallv: send", send, out);
    set_recv(made, "alltoallv: recv", recv, in);
    return made;
  }
  [[nodiscard]] BlocksCall alltoallv(auto& buffer, const Blocks& blocks) const {
    BlocksCall made{describe(FERRY_ALLTOALLV, buffer, 0), {}, {}};
    set_recv(made, "alltoallv: buffer", buffer, blocks);
    return made;
  }
  [[nodiscard]] BlocksCall allgatherv(auto& send, auto& recv, const Blocks& in) const {
    BlocksCall made{describe(FERRY_ALLGATHERV, send, recv, std::ranges::size(send)), {}, {}};
    set_recv(made, "allgatherv: recv", recv, in);
    return made;
  }
  [[nodiscard]] BlocksCall allgatherv(auto& buffer, const Blocks& blocks) const {
    BlocksCall made{describe(FERRY_ALLGATHERV, buffer, 0), {}, {}};
    set_recv(made, "allgatherv: buffer", buffer, blocks);
    return made;
  }
  [[nodiscard]] BlocksCall gatherv(auto& send, auto& recv, const Blocks& in, int root) const {
    BlocksCall made{
        rooted(describe(FERRY_GATHERV, send, recv, std::ranges::size(send)), root), {}, {}};
    if (rank_ == root) set_recv(made, "gatherv: recv", recv, in);
    return made;
  }
  [[nodiscard]] BlocksCall scatterv(auto& send, const Blocks& out, auto& recv, int root) const {
    BlocksCall made{
        rooted(describe(FERRY_SCATTERV, send, recv, std::ranges::size(recv)), root), {}, {}};
    if (rank_ == root) set_send(made, "scatterv: send", send, out);
    return made;
  }

  [[nodiscard]] ferry_call allreduce(auto& send, auto& recv, Op op) const {
    fits("allreduce", std::ranges::size(send), std::ranges::size(recv));
    return reducing(describe(FERRY_ALLREDUCE, send, recv, std::ranges::size(send)), op);
  }
  [[nodiscard]] ferry_call allreduce(auto& buffer, Op op) const {
    return reducing(describe(FERRY_ALLREDUCE, buffer, std::ranges::size(buffer)), op);
  }
  [[nodiscard]] ferry_call reduce(auto& send, auto& recv, Op op, int root) const {
    if (rank_ == root) fits("reduce", std::ranges::size(send), std::ranges::size(recv));
    ferry_call call = describe(FERRY_REDUCE, send, recv, std::ranges::size(send));
    return rooted(reducing(call, op), root);
  }
  [[nodiscard]] ferry_call reduce_scatter_block(auto& send, auto& recv, Op op) const {
    const std::size_t each = block("reduce_scatter_block: send", std::ranges::size(send));
    fits("reduce_scatter_block", each, std::ranges::size(recv));
    return reducing(describe(FERRY_REDUCE_SCATTER_BLOCK, send, recv, each), op);
  }
  [[nodiscard]] BlocksCall reduce_scatter(
      auto& send, auto& recv, const std::vector<MPI_Count>& counts, Op op) const {
    BlocksCall made{reducing(describe(FERRY_REDUCE_SCATTER, send, recv, 0), op), {}, {}};
    const Blocks parts = Blocks::packed(counts);
    set(made.send, "reduce_scatter: send", std::ranges::size(send), parts, 1);
    fits(
        "reduce_scatter", static_cast<std::size_t>(counts[static_cast<std::size_t>(rank_)]),
        std::ranges::size(recv));
    made.call.recvcounts = made.send.counts.data();
    return made;
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  [[nodiscard]] static ferry_call rooted(ferry_call call, int root) {
    call.root = root;
    return call;
  }
  [[nodiscard]] static ferry_call reducing(ferry_call call, Op op) {
    call.op = op_of(op);
    return call;
  }
  [[nodiscard]] ferry_call describe(ferry_operation operation) const {
    ferry_call call{};
    call.size = sizeof call;
    call.operation = operation;
    call.form = FERRY_BLOCKING;
    call.flags = FERRY_NO_ERROR_HANDLER;
    call.sendtype = call.recvtype = MPI_DATATYPE_NULL;
    call.comm = comm_;
    return call;
  }
  // Of a call whose receive (or only) buffer is recv, in blocks of `each` elements.
  [[nodiscard]] ferry_call describe(ferry_operation operation, auto& recv, std::size_t each) const {
    using T = std::ranges::range_value_t<decltype(recv)>;
    ferry_call call = describe(operation);
    call.sendbuf = MPI_IN_PLACE;
    call.recvbuf = std::ranges::data(recv);
    call.sendcount = call.recvcount = items<T>(each);
    call.sendtype = call.recvtype = Wire::type(Tag<T>{});
    return call;
  }
  [[nodiscard]] ferry_call describe(
      ferry_operation operation, auto& send, auto& recv, std::size_t each) const {
    ferry_call call = describe(operation, recv, each);
    call.sendbuf = std::ranges::data(send);
    return call;
  }

  // Blocks in items of the wire, each inside of the buffer.
  void set(
      Blocks& to, const std::string& what, std::size_t elements, const Blocks& from,
      MPI_Count each) const {
    if (from.counts.size() != ranks() || from.displs.size() != ranks()) {
      throw Error(
          MPI_ERR_COUNT, what + " has not one count and displacement for each of " +
                             std::to_string(size_) + " ranks");
    }
    to = from;
    for (std::size_t i = 0; i < ranks(); ++i) {
      const bool inside = from.counts[i] >= 0 && from.displs[i] >= 0 &&
                          from.displs[i] + from.counts[i] <= static_cast<MPI_Aint>(elements);
      if (!inside) {
        throw Error(
            MPI_ERR_COUNT, what + " has " + std::to_string(elements) + " elements, block " +
                               std::to_string(i) + " is not inside");
      }
      to.counts[i] *= each;
      to.displs[i] *= each;
    }
  }
  void set_send(BlocksCall& made, const std::string& what, auto& buffer, const Blocks& out) const {
    using T = std::ranges::range_value_t<decltype(buffer)>;
    set(made.send, what, std::ranges::size(buffer), out, items<T>(1));
    made.call.sendcounts = made.send.counts.data();
    made.call.sdispls = made.send.displs.data();
  }
  void set_recv(BlocksCall& made, const std::string& what, auto& buffer, const Blocks& in) const {
    using T = std::ranges::range_value_t<decltype(buffer)>;
    set(made.recv, what, std::ranges::size(buffer), in, items<T>(1));
    made.call.recvcounts = made.recv.counts.data();
    made.call.rdispls = made.recv.displs.data();
  }

  // The elements of one of size() equal blocks.
  [[nodiscard]] std::size_t block(const std::string& what, std::size_t elements) const {
    if (elements % ranks() == 0) return elements / ranks();
    throw Error(
        MPI_ERR_COUNT, what + " has " + std::to_string(elements) + " elements, not a multiple of " +
                           std::to_string(size_) + " ranks");
  }
  static void fits(const std::string& what, std::size_t needed, std::size_t elements) {
    if (elements >= needed) return;
    throw Error(
        MPI_ERR_COUNT, what + ": recv has " + std::to_string(elements) + " elements, but " +
                           std::to_string(needed) + " arrive");
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

} // namespace detail

} // namespace ferry
