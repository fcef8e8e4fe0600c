// SPDX-License-Identifier: MIT
// The C++20 face of Ferry, header-only over ferry.h.
//
// Errors: the control path (construction, *_init, starting a non-blocking call, allocation, and a
// span of the wrong size anywhere) throws Error; the data path (blocking calls, start, test, wait)
// returns Status. No MPI error handler is called, but for what SharedArray says.
//
// Buffers are contiguous ranges of trivially copyable elements: std::span, std::vector, std::array,
// SharedArray. Arithmetic types and std::complex travel as their MPI datatype, all others as bytes.
// All calls are collective in the MPI sense; objects must be gone before MPI_Finalize.
#pragma once

#include <string>
#include <vector>

#include <mpi.h>

#include <ferry/ferry.h>
#include <ferry/buffers.hpp>
#include <ferry/calls.hpp>
#include <ferry/handles.hpp>
#include <ferry/shared_array.hpp>

namespace ferry {

/// A view of an MPI communicator with Ferry's collectives. The communicator is borrowed: neither
/// duplicated nor freed, and it must outlive this object and what it made. Copies are cheap.
///
/// Every collective comes as blocking call, as i* (a Request) and as *_init (a Plan).
/// * alltoall(send, recv): block i of send goes to rank i, block j of recv comes from rank j. The
///   size of send must be a multiple of size(); recv has at least that size. alltoall(buffer)
///   works in place.
/// * allgather(send, recv): send of rank j becomes block j of recv; recv has at least size() times
///   the size of send. allgather(buffer): block rank() of buffer is what this rank gives.
/// * alltoallv(send, out, recv, in), allgatherv(send, recv, in): the same with Blocks; alltoallv
/// and
///   allgatherv of (buffer, blocks) work in place.
/// * broadcast(buffer, root): buffer of root replaces buffer of all.
/// * gather(send, recv, root), gatherv(send, recv, in, root): send of rank j becomes block j of
/// recv
///   of the root; recv and in of others are not looked at.
/// * scatter(send, recv, root), scatterv(send, out, recv, root): block i of send of the root
/// becomes
///   recv of rank i; send and out of others are not looked at.
/// * barrier(): returns when all ranks have entered.
/// * allreduce(send, recv, op), allreduce(buffer, op), reduce(send, recv, op, root): element by
///   element a0 op (a1 op (a2 op ...)) over the ranks.
/// * reduce_scatter_block(send, recv, op): the result has size() equal blocks, of which rank i gets
///   block i; reduce_scatter(send, recv, counts, op): it gets counts[i] elements.
/// A blocking call returns when this rank's buffers are its own again; it may wait for others.
class Communicator {
 public:
  /// Throws Error for MPI_COMM_NULL and for inter-communicators.
  explicit Communicator(MPI_Comm comm) : calls_(comm) {}

  [[nodiscard]] int rank() const noexcept { return calls_.rank(); }
  [[nodiscard]] int size() const noexcept { return calls_.size(); }
  [[nodiscard]] MPI_Comm mpi() const noexcept { return calls_.comm(); }
  /// "<path>: <why>" of this rank's last blocking or non-blocking collective. Throws Error.
  [[nodiscard]] std::string explain() const {
    return detail::line(
        [this](char* text, std::size_t size) { return ferry_comm_explain(mpi(), text, size); });
  }

  Status alltoall(SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return run(calls_.alltoall(send, recv));
  }
  [[nodiscard]] Request ialltoall(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Request(make(calls_.alltoall(send, recv), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan alltoall_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Plan(make(calls_.alltoall(send, recv), FERRY_PERSISTENT));
  }
  Status alltoall(RecvBuffer auto&& buffer) const { return run(calls_.alltoall(buffer)); }
  [[nodiscard]] Request ialltoall(RecvBuffer auto&& buffer) const {
    return Request(make(calls_.alltoall(buffer), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan alltoall_init(RecvBuffer auto&& buffer) const {
    return Plan(make(calls_.alltoall(buffer), FERRY_PERSISTENT));
  }

  Status alltoallv(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      const Blocks& in) const {
    return run(calls_.alltoallv(send, out, recv, in));
  }
  [[nodiscard]] Request ialltoallv(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      const Blocks& in) const {
    return Request(make(calls_.alltoallv(send, out, recv, in), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan alltoallv_init(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      const Blocks& in) const {
    return Plan(make(calls_.alltoallv(send, out, recv, in), FERRY_PERSISTENT));
  }
  Status alltoallv(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return run(calls_.alltoallv(buffer, blocks));
  }
  [[nodiscard]] Request ialltoallv(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return Request(make(calls_.alltoallv(buffer, blocks), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan alltoallv_init(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return Plan(make(calls_.alltoallv(buffer, blocks), FERRY_PERSISTENT));
  }

  Status allgather(SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return run(calls_.allgather(send, recv));
  }
  [[nodiscard]] Request iallgather(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Request(make(calls_.allgather(send, recv), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allgather_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Plan(make(calls_.allgather(send, recv), FERRY_PERSISTENT));
  }
  Status allgather(RecvBuffer auto&& buffer) const { return run(calls_.allgather(buffer)); }
  [[nodiscard]] Request iallgather(RecvBuffer auto&& buffer) const {
    return Request(make(calls_.allgather(buffer), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allgather_init(RecvBuffer auto&& buffer) const {
    return Plan(make(calls_.allgather(buffer), FERRY_PERSISTENT));
  }

  Status allgatherv(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in) const {
    return run(calls_.allgatherv(send, recv, in));
  }
  [[nodiscard]] Request iallgatherv(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in) const {
    return Request(make(calls_.allgatherv(send, recv, in), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allgatherv_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in) const {
    return Plan(make(calls_.allgatherv(send, recv, in), FERRY_PERSISTENT));
  }
  Status allgatherv(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return run(calls_.allgatherv(buffer, blocks));
  }
  [[nodiscard]] Request iallgatherv(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return Request(make(calls_.allgatherv(buffer, blocks), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allgatherv_init(RecvBuffer auto&& buffer, const Blocks& blocks) const {
    return Plan(make(calls_.allgatherv(buffer, blocks), FERRY_PERSISTENT));
  }

  Status broadcast(RecvBuffer auto&& buffer, int root) const {
    return run(calls_.broadcast(buffer, root));
  }
  [[nodiscard]] Request ibroadcast(RecvBuffer auto&& buffer, int root) const {
    return Request(make(calls_.broadcast(buffer, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan broadcast_init(RecvBuffer auto&& buffer, int root) const {
    return Plan(make(calls_.broadcast(buffer, root), FERRY_PERSISTENT));
  }

  Status gather(SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return run(calls_.gather(send, recv, root));
  }
  [[nodiscard]] Request igather(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return Request(make(calls_.gather(send, recv, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan gather_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return Plan(make(calls_.gather(send, recv, root), FERRY_PERSISTENT));
  }
  Status gatherv(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in,
      int root) const {
    return run(calls_.gatherv(send, recv, in, root));
  }
  [[nodiscard]] Request igatherv(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in,
      int root) const {
    return Request(make(calls_.gatherv(send, recv, in, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan gatherv_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, const Blocks& in,
      int root) const {
    return Plan(make(calls_.gatherv(send, recv, in, root), FERRY_PERSISTENT));
  }

  Status scatter(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return run(calls_.scatter(send, recv, root));
  }
  [[nodiscard]] Request iscatter(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return Request(make(calls_.scatter(send, recv, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan scatter_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv, int root) const {
    return Plan(make(calls_.scatter(send, recv, root), FERRY_PERSISTENT));
  }
  Status scatterv(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      int root) const {
    return run(calls_.scatterv(send, out, recv, root));
  }
  [[nodiscard]] Request iscatterv(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      int root) const {
    return Request(make(calls_.scatterv(send, out, recv, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan scatterv_init(
      SendBuffer auto&& send, const Blocks& out, RecvBufferFor<decltype(send)> auto&& recv,
      int root) const {
    return Plan(make(calls_.scatterv(send, out, recv, root), FERRY_PERSISTENT));
  }

  Status barrier() const { return run(calls_.barrier()); }
  [[nodiscard]] Request ibarrier() const {
    return Request(make(calls_.barrier(), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan barrier_init() const { return Plan(make(calls_.barrier(), FERRY_PERSISTENT)); }

  Status allreduce(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return run(calls_.allreduce(send, recv, op));
  }
  [[nodiscard]] Request iallreduce(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return Request(make(calls_.allreduce(send, recv, op), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allreduce_init(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return Plan(make(calls_.allreduce(send, recv, op), FERRY_PERSISTENT));
  }
  Status allreduce(ResultBuffer auto&& buffer, Op op) const {
    return run(calls_.allreduce(buffer, op));
  }
  [[nodiscard]] Request iallreduce(ResultBuffer auto&& buffer, Op op) const {
    return Request(make(calls_.allreduce(buffer, op), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allreduce_init(ResultBuffer auto&& buffer, Op op) const {
    return Plan(make(calls_.allreduce(buffer, op), FERRY_PERSISTENT));
  }
  Status reduce(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op, int root) const {
    return run(calls_.reduce(send, recv, op, root));
  }
  [[nodiscard]] Request ireduce(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op, int root) const {
    return Request(make(calls_.reduce(send, recv, op, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan reduce_init(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op, int root) const {
    return Plan(make(calls_.reduce(send, recv, op, root), FERRY_PERSISTENT));
  }
  Status reduce_scatter(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv,
      const std::vector<MPI_Count>& counts, Op op) const {
    return run(calls_.reduce_scatter(send, recv, counts, op));
  }
  [[nodiscard]] Request ireduce_scatter(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv,
      const std::vector<MPI_Count>& counts, Op op) const {
    return Request(make(calls_.reduce_scatter(send, recv, counts, op), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan reduce_scatter_init(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv,
      const std::vector<MPI_Count>& counts, Op op) const {
    return Plan(make(calls_.reduce_scatter(send, recv, counts, op), FERRY_PERSISTENT));
  }
  Status reduce_scatter_block(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return run(calls_.reduce_scatter_block(send, recv, op));
  }
  [[nodiscard]] Request ireduce_scatter_block(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return Request(make(calls_.reduce_scatter_block(send, recv, op), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan reduce_scatter_block_init(
      SendBuffer auto&& send, ResultBufferFor<decltype(send)> auto&& recv, Op op) const {
    return Plan(make(calls_.reduce_scatter_block(send, recv, op), FERRY_PERSISTENT));
  }

 private:
  static Status run(const ferry_call& call) {
    return detail::status_of(ferry_collective(&call, nullptr));
  }
  static Status run(const detail::BlocksCall& made) { return run(made.call); }
  [[nodiscard]] static detail::Handle make(ferry_call call, ferry_form form) {
    call.form = form;
    ferry_request raw = FERRY_REQUEST_NULL;
    detail::check(ferry_collective(&call, &raw));
    return detail::Handle(raw);
  }
  // Arrays are read before the call returns.
  [[nodiscard]] static detail::Handle make(const detail::BlocksCall& made, ferry_form form) {
    return make(made.call, form);
  }

  detail::Calls calls_;
};

} // namespace ferry
