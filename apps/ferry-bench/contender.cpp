// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/contender.hpp"

#include <array>
#include <ferry/ferry.hpp>
#include <memory>

namespace ferry::bench {
namespace {

void check_ferry(int code) {
  if (code != MPI_SUCCESS) throw Error(code, ferry_error_text());
}

std::string explain_request(ferry_request request) {
  std::array<char, 1024> text{};
  check_ferry(ferry_explain(request, text.data(), text.size()));
  return text.data();
}

std::string explain_comm(MPI_Comm comm) {
  std::array<char, 1024> text{};
  check_ferry(ferry_comm_explain(comm, text.data(), text.size()));
  return text.data();
}

// As a program calls it: by the function's own name where there is one for these arguments.
int call_blocking(const ferry_call& c) {
  switch (c.operation) {
    case FERRY_ALLTOALL:
      return ferry_alltoall(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm);
    case FERRY_ALLGATHER:
      return ferry_allgather(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm);
    case FERRY_BCAST:
      return ferry_bcast(c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm);
    default:
      return ferry_collective(&c, nullptr);
  }
}

Contender blocking_ferry(const ferry_call& call) {
  const auto run = [call] { check_ferry(call_blocking(call)); };
  return {run, [call, run] {
            run();
            run(); // between nodes the way of a call may depend on the one before
            return explain_comm(call.comm);
          }};
}

Contender nonblocking_ferry(const ferry_call& call) {
  const auto run = [call] {
    ferry_request request = FERRY_REQUEST_NULL;
    check_ferry(ferry_collective(&call, &request));
    check_ferry(ferry_wait(&request));
  };
  return {run, [call] {
            ferry_request request = FERRY_REQUEST_NULL;
            check_ferry(ferry_collective(&call, &request));
            std::string text = explain_request(request);
            check_ferry(ferry_wait(&request));
            return text;
          }};
}

Contender persistent_ferry(const ferry_call& call) {
  const std::shared_ptr<ferry_request> plan(
      new ferry_request(FERRY_REQUEST_NULL), [](ferry_request* request) {
        if (*request != FERRY_REQUEST_NULL) ferry_request_free(request);
        delete request;
      });
  check_ferry(ferry_collective(&call, plan.get()));
  const auto run = [plan] {
    check_ferry(ferry_start(plan.get()));
    check_ferry(ferry_wait(plan.get()));
  };
  return {run, [plan] { return explain_request(*plan); }};
}

} // namespace

Contender make_ferry(const Options& options, Buffers& buffers, MPI_Comm comm) {
  const ferry_call call = describe(options, buffers, comm);
  switch (options.form) {
    case FERRY_BLOCKING:
      return blocking_ferry(call);
    case FERRY_NONBLOCKING:
      return nonblocking_ferry(call);
    case FERRY_PERSISTENT:
      break;
  }
  return persistent_ferry(call);
}

} // namespace ferry::bench
