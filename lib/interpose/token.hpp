// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <atomic>
#include <memory>
#include <string>

#include "lib/api/call.hpp"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/interpose/tally.hpp"

namespace ferry::interpose {

// A request of the program that stands for an operation of Ferry. The program holds a real request
// of the MPI below: for persistent operations one that sends nothing to nobody (it keeps the
// communicator alive as well), for non-blocking ones a generalised request.
struct Token {
  std::unique_ptr<ferry_request_s> operation;
  MPI_Request request = MPI_REQUEST_NULL;
  std::shared_ptr<Tally> tally; // of its starts, when they are counted
  std::string path;

  [[nodiscard]] bool persistent() const { return operation->persistent(); }
  [[nodiscard]] bool started() const { return operation->started; }
};

// How many tokens there are, and how many of their operations are started.
struct TokenCounts {
  std::atomic<int> alive{0};
  std::atomic<int> started{0};
};
extern TokenCounts token_counts;

// Whether a request may be a token: false in the usual case, at the price of one branch.
[[nodiscard]] inline bool any_token() {
  return token_counts.alive.load(std::memory_order_relaxed) != 0;
}

// The token that a request of the program is, or null.
[[nodiscard]] Token* find_token(MPI_Request request);

// Makes the request of the MPI below. Throws Failure.
[[nodiscard]] MPI_Request make_token(ferry_request operation, const core::Call& call);

// Ready when its operation is complete, or not started; drives it.
[[nodiscard]] core::Poll look(Token& token);
// Serve everything while nothing is ready, and see whether the peers live.
void poke(Token& token);

// Starts an inactive persistent operation.
[[nodiscard]] core::Status start(Token& token);
// Of a started operation that is complete: a persistent token rests, a non-blocking one goes and
// *request becomes MPI_REQUEST_NULL.
[[nodiscard]] core::Status finish(Token& token, MPI_Request* request);
// Waits for a started operation, then as above.
[[nodiscard]] core::Status wait(Token& token, MPI_Request* request);
// Of a persistent operation; one that is started ends first, out of sight.
void free_token(Token& token, MPI_Request* request);

// Where an error of the token is reported.
[[nodiscard]] core::CallSite site_of(const char* function, const Token& token);

} // namespace ferry::interpose
