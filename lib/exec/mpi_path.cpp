// SPDX-License-Identifier: MIT
#include "lib/exec/mpi_path.hpp"

#include <functional>
#include <string>
#include <utility>

#include "collectives/table.hpp"
#include "lib/base/inside.hpp"

namespace ferry::core {

// To this rank itself, and never started. With MPI_PROC_NULL MPICH 4.0.2 leaves something behind in
// the request: a persistent collective that gets the same request after it never ends.
void CommHold::hold(MPI_Comm comm) {
  if (token_ != MPI_REQUEST_NULL || comm == MPI_COMM_NULL) return;
  int self = 0;
  PMPI_Comm_rank(comm, &self);
  PMPI_Send_init(nullptr, 0, MPI_BYTE, self, 0, comm, &token_);
}

void CommHold::release() {
  if (token_ == MPI_REQUEST_NULL || inside.mpi_closed) return;
  int finalized = 0;
  PMPI_Finalized(&finalized);
  // May free the communicator here and now, and with it the state that hangs on it.
  MPI_Request token = std::exchange(token_, MPI_REQUEST_NULL);
  if (finalized == 0) PMPI_Request_free(&token);
}

void MpiPath::note(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  PMPI_Error_string(code, text, &length);
  status_ = {ErrorKind::below, "the MPI below reports: " + std::string(text), "see its text"};
}

namespace {

// Alike on all ranks. MPICH 4.0.2 is wrong about some exchanges in place, which it does pair by
// pair anyway.
bool goes_in_pairs(const CollectiveDesc& desc) {
  return config().enabled && desc.operation == Operation::alltoall && !desc.in_place &&
         desc.block_bytes() >= table().node_pairs_from;
}

} // namespace

// Ranks of one call may differ in whether their blocks have gaps, but must make the same call
// below.
void MpiPath::start(MPI_Comm comm, const CollectiveDesc& desc) {
  status_ = {};
  if (desc.operation == Operation::barrier) {
    note(PMPI_Ibarrier(comm, &request_));
  } else if (desc.reduction != nullptr) {
    start_reduction(comm, desc);
  } else if (is_exchange(desc) || goes_in_pairs(desc)) {
    start_exchange(comm, desc);
  } else if (desc.recv_plain() && (desc.in_place || desc.send_plain())) {
    start_regular(comm, desc, desc.send_start(), desc.recv_start());
  } else {
    pack_all(comm, desc);
    start_regular(comm, desc, packed_->send.data(), packed_->recv.data());
  }
}

void MpiPath::start_regular(
    MPI_Comm comm, const CollectiveDesc& desc, const std::byte* from, std::byte* recv) {
  const auto bytes = static_cast<MPI_Count>(desc.block_bytes());
  const void* send = desc.in_place ? MPI_IN_PLACE : from;
  switch (desc.operation) {
    case Operation::alltoall:
      note(PMPI_Ialltoall_c(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::allgather:
      note(PMPI_Iallgather_c(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::broadcast:
      note(PMPI_Ibcast_c(recv, bytes, MPI_BYTE, desc.root, comm, &request_));
      return;
    default:
      status_ = {ErrorKind::other, "no such regular collective", "please report this"};
  }
}

// Outside of Ferry, so that what else is in flight goes on meanwhile.
void MpiPath::run_packed(MPI_Comm comm, const CollectiveDesc& desc) {
  status_ = {};
  pack_all(comm, desc);
  const auto bytes = static_cast<MPI_Count>(desc.block_bytes());
  const void* send = desc.in_place ? MPI_IN_PLACE : packed_->send.data();
  std::byte* recv = packed_->recv.data();
  const Outside scope;
  if (desc.operation == Operation::alltoall) {
    note(PMPI_Alltoall_c(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm));
  } else if (desc.operation == Operation::allgather) {
    note(PMPI_Allgather_c(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm));
  } else {
    note(PMPI_Bcast_c(recv, bytes, MPI_BYTE, desc.root, comm));
  }
  if (status_.ok()) unpack_all();
}

void MpiPath::start_reduction(MPI_Comm comm, const CollectiveDesc& desc) {
  const Reduction& how = *desc.reduction;
  const void* send = desc.in_place ? MPI_IN_PLACE : desc.send;
  packed_ = std::make_unique<Packed>();
  MPI_Count total = 0;
  for (const std::uint64_t count : how.counts) {
    packed_->in.add(count);
    total += static_cast<MPI_Count>(count);
  }
  if (desc.operation == Operation::allreduce) {
    note(PMPI_Iallreduce_c(send, desc.recv, total, how.type, how.op, comm, &request_));
  } else if (desc.operation == Operation::reduce) {
    note(PMPI_Ireduce_c(send, desc.recv, total, how.type, how.op, desc.root, comm, &request_));
  } else {
    note(PMPI_Ireduce_scatter_c(
        send, desc.recv, packed_->in.bytes.data(), how.type, how.op, comm, &request_));
  }
}

// Blocks go packed one behind the other, so that the MPI below needs to know neither types nor
// displacements. In place, and on the root of a broadcast, the data wait in the receive side.
void MpiPath::pack_all(MPI_Comm comm, const CollectiveDesc& desc) {
  packed_ = std::make_unique<Packed>();
  Packed& all = *packed_;
  all.desc = desc;
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &all.rank);
  all.ranks = ranks;
  const bool broadcast = desc.operation == Operation::broadcast;
  const bool one_send = desc.operation == Operation::allgather && !is_exchange(desc);
  for (int rank = 0; rank < (broadcast ? 1 : ranks); ++rank) {
    all.recv.insert(all.recv.end(), desc.recv_block(rank).bytes(), std::byte{});
    const bool sends = !desc.in_place && !broadcast && (rank == 0 || !one_send);
    all.send.insert(all.send.end(), sends ? desc.send_block(rank).bytes() : 0, std::byte{});
  }
  const bool from_recv = desc.in_place || broadcast;
  std::byte* out = from_recv ? all.recv.data() : all.send.data();
  const int blocks = broadcast || one_send ? 1 : ranks;
  for (int rank = 0; rank < (desc.in_place ? ranks : blocks); ++rank) {
    const Layout& layout = from_recv ? desc.recv_block(rank) : desc.send_block(rank);
    pack(layout, from_recv ? desc.recv_base(rank) : desc.send_base(rank), 0, layout.bytes(), out);
    out += layout.bytes();
  }
}

void MpiPath::Shares::add(std::uint64_t more) {
  at.push_back(at.empty() ? 0 : at.back() + bytes.back());
  bytes.push_back(static_cast<MPI_Count>(more));
}

namespace {

// A side whose blocks have no gaps can be read and written where it lies. Null when some block has
// gaps, else the lowest address of any, which is not null where none has bytes.
template <class Byte, class BlockOf>
Byte* lowest_of_plain(int ranks, const BlockOf& block_of) {
  static std::byte nothing;
  Byte* lowest = nullptr;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [layout, base] = block_of(rank);
    if (layout->bytes() == 0) continue;
    if (!layout->contiguous()) return nullptr;
    Byte* begin = base + layout->offset;
    if (lowest == nullptr || std::less<>{}(begin, lowest)) lowest = begin;
  }
  return lowest != nullptr ? lowest : &nothing;
}

} // namespace

// Of gather and scatter all blocks but those of the root are empty. Whether blocks have gaps is a
// matter of each rank.
void MpiPath::start_exchange(MPI_Comm comm, const CollectiveDesc& desc) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  const auto send_of = [&](int rank) {
    return std::pair(&desc.send_block(rank), desc.send_base(rank));
  };
  const auto recv_of = [&](int rank) {
    return std::pair(&desc.recv_block(rank), desc.recv_base(rank));
  };
  const auto* send = desc.in_place ? nullptr : lowest_of_plain<const std::byte>(ranks, send_of);
  auto* recv = lowest_of_plain<std::byte>(ranks, recv_of);
  const bool plain = recv != nullptr && (desc.in_place || send != nullptr);
  if (plain) {
    packed_ = std::make_unique<Packed>();
    PMPI_Comm_rank(comm, &packed_->rank);
  } else {
    pack_all(comm, desc);
    send = packed_->send.data();
    recv = packed_->recv.data();
  }
  Shares& out = packed_->out;
  Shares& in = packed_->in;
  for (int rank = 0; rank < ranks; ++rank) {
    in.add(desc.recv_block(rank).bytes());
    out.add(desc.in_place ? 0 : desc.send_block(rank).bytes());
    if (!plain) continue;
    if (in.bytes.back() > 0)
      in.at.back() = recv_of(rank).second + recv_of(rank).first->offset - recv;
    if (out.bytes.back() > 0) {
      out.at.back() = send_of(rank).second + send_of(rank).first->offset - send;
    }
  }
  if (!desc.own_block && !desc.in_place) { // the own block stays, whichever side tells of it
    const auto me = static_cast<std::size_t>(packed_->rank);
    out.bytes[me] = 0;
    in.bytes[me] = 0;
  }
  note(PMPI_Ialltoallv_c(
      desc.in_place ? MPI_IN_PLACE : send, out.bytes.data(), out.at.data(), MPI_BYTE, recv,
      in.bytes.data(), in.at.data(), MPI_BYTE, comm, &request_));
}

void MpiPath::unpack_all() {
  const Packed& all = *packed_; // of a reduction it has no blocks
  const CollectiveDesc& desc = all.desc;
  const bool broadcast = desc.operation == Operation::broadcast;
  const int blocks = broadcast ? (all.rank == desc.root ? 0 : 1) : all.ranks;
  const std::byte* from = all.recv.data();
  for (int rank = 0; rank < blocks; ++rank) {
    const Layout& layout = desc.recv_block(rank);
    const bool keep = rank == all.rank && !desc.own_block && !broadcast;
    if (!keep) unpack(layout, desc.recv_base(rank), 0, layout.bytes(), from);
    from += layout.bytes();
  }
  packed_.reset();
}

Poll MpiPath::progress() {
  if (request_ == MPI_REQUEST_NULL) return Poll::ready;
  if (inside.mpi_closed) return Poll::pending;
  int done = 0;
  note(PMPI_Test(&request_, &done, MPI_STATUS_IGNORE));
  if (done != 0 && packed_ != nullptr) unpack_all();
  return done != 0 || !status_.ok() ? Poll::ready : Poll::pending;
}

} // namespace ferry::core
