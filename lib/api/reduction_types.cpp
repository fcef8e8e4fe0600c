// SPDX-License-Identifier: MIT
// Which predefined operations MPI allows on which predefined types (MPI 4.0, section 6.9.2).
#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>

#include "lib/api/describe_call.hpp"
#include "lib/api/type_layout.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

using Types = std::initializer_list<MPI_Datatype>;

bool among(MPI_Datatype type, Types types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_integer(MPI_Datatype type) {
  return among(type, {MPI_INT,         MPI_LONG,          MPI_SHORT,     MPI_UNSIGNED_SHORT,
                      MPI_UNSIGNED,    MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG,
                      MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T,    MPI_INT16_T,
                      MPI_INT32_T,     MPI_INT64_T,       MPI_UINT8_T,   MPI_UINT16_T,
                      MPI_UINT32_T,    MPI_UINT64_T,      MPI_INTEGER,   MPI_INTEGER1,
                      MPI_INTEGER2,    MPI_INTEGER4,      MPI_INTEGER8,  MPI_AINT,
                      MPI_OFFSET,      MPI_COUNT});
}

bool is_real(MPI_Datatype type) {
  return among(
      type, {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4,
             MPI_REAL8, MPI_REAL16});
}

bool is_complex(MPI_Datatype type) {
  return among(
      type, {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX,
             MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32, MPI_CXX_FLOAT_COMPLEX,
             MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
}

bool is_logical(MPI_Datatype type) {
  return among(type, {MPI_C_BOOL, MPI_LOGICAL, MPI_CXX_BOOL});
}

bool allowed(MPI_Op op, MPI_Datatype type) {
  if (op == MPI_SUM || op == MPI_PROD) return is_integer(type) || is_real(type) || is_complex(type);
  if (op == MPI_MIN || op == MPI_MAX) return is_integer(type) || is_real(type);
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
    return is_integer(type) || is_logical(type);
  }
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
    return is_integer(type) || type == MPI_BYTE;
  }
  if (op == MPI_MINLOC || op == MPI_MAXLOC) {
    return among(type, {MPI_FLOAT_INT, MPI_2INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION});
  }
  return false;
}

} // namespace

const char* why_not_reduced(MPI_Op op, MPI_Datatype type) {
  return allowed(op, type) ? nullptr
                           : "this is not a predefined operation on a type that MPI defines it for";
}

namespace {

void check_reduction(const Call& call) {
  const Side& recv = call.recv;
  if (recv.arrays && !recv.counts.given()) {
    throw Failure(
        ErrorKind::argument, "the counts of recvbuf are NULL",
        "pass an array with one entry for each rank");
  }
  if (const char* why = why_not_reduced(call.reduction, recv.type); why != nullptr) {
    throw Failure(
        ErrorKind::argument, why,
        "use a predefined operation with its types, or the collective of MPI");
  }
}

} // namespace

void describe_reduction(const Call& call, int rank, int ranks, CollectiveDesc& desc) {
  check_reduction(call);
  auto reduction = std::make_shared<Reduction>();
  const Layout element = type_layout(call.comm, 1, call.recv.type, "recvbuf");
  reduction->op = call.reduction;
  reduction->type = call.recv.type;
  reduction->element_bytes = element.element_bytes;
  const bool scattered = call.operation == Operation::reduce_scatter;
  const bool at_root = call.operation != Operation::reduce || rank == call.root;
  std::uint64_t total = 0;
  for (int i = 0; i < ranks; ++i) {
    const MPI_Count given = call.recv.counts.given() ? call.recv.counts[i] : call.recv.count;
    if (given < 0) {
      throw Failure(
          ErrorKind::count, fmt::format("the count of {} is {}", "recvbuf", given),
          "pass 0 or more");
    }
    const auto all = static_cast<std::uint64_t>(given);
    // Of a whole result each rank computes an equal share.
    const auto n = static_cast<std::uint64_t>(ranks);
    const auto at = static_cast<std::uint64_t>(i);
    reduction->counts.push_back(scattered ? all : all * (at + 1) / n - all * at / n);
    total += reduction->counts.back();
  }
  desc.in_place = call.send.buffer == MPI_IN_PLACE;
  desc.send = desc.in_place ? desc.recv : call.send.buffer;
  const bool no_result = at_root && call.recv.buffer == nullptr;
  if (total > 0 && (desc.send == nullptr || no_result)) {
    throw Failure(
        ErrorKind::buffer, "a buffer is NULL, but its count is not 0",
        "pass the buffer, or 0 as count on all ranks");
  }
  if (total > 0 && !desc.in_place && at_root && desc.send == desc.recv) {
    throw Failure(
        ErrorKind::buffer, "send and receive buffer are the same",
        "pass MPI_IN_PLACE as send buffer");
  }
  desc.reduction = std::move(reduction);
}

} // namespace ferry::core
