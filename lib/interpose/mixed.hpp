// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "lib/base/wait.hpp"
#include "lib/interpose/token.hpp"

namespace ferry::interpose {

// Whether one of the requests is a token; false for what is no array.
[[nodiscard]] bool holds_token(int count, const MPI_Request requests[]);

// Operations of Ferry are under way, and waits of the MPI below do not move them on: they must be
// served before such a wait begins.
[[nodiscard]] bool must_serve();
// Serves Ferry until the requests, none of them a token, are complete; they are not freed.
void serve_until_complete(int count, const MPI_Request requests[]);

// The requests of one call, tokens and others apart. The array of others has MPI_REQUEST_NULL where
// a token stands, so that it goes to the MPI below with all indices as they are.
class MixedRequests {
 public:
  MixedRequests(int count, MPI_Request requests[]);
  MixedRequests(const MixedRequests&) = delete;
  MixedRequests& operator=(const MixedRequests&) = delete;
  // Hands back what the MPI below made of the others.
  ~MixedRequests();

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] Token* token(int i) const { return tokens_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] MPI_Request* others() { return others_.data(); }
  [[nodiscard]] bool any_other() const { return any_other_; }
  // Started operations of Ferry: how many, and how many of them are complete. Drives them.
  [[nodiscard]] int started() const;
  [[nodiscard]] int ready() const;
  // Serves while nothing is ready.
  void poke() const;
  // Ends one that is complete, or waits for it; the request of the program is set.
  [[nodiscard]] core::Status finish(int i);
  [[nodiscard]] core::Status wait(int i);

 private:
  int count_;
  MPI_Request* requests_;
  std::vector<Token*> tokens_;
  std::vector<MPI_Request> others_;
  bool any_other_ = false;
};

// What a wait for one of several requests serves. It never sleeps: nobody would wake it for a
// message of the MPI below.
class MixedWait final : public core::WaitContext {
 public:
  MixedWait(const char* function, MixedRequests* requests)
      : function_(function), requests_(requests) {}
  [[nodiscard]] core::WaitPolicy policy() const;
  void poke() override;
  void sleep(double seconds, bool (*ready)(void*), void* look) override;
  core::Status check_peers() override;
  [[nodiscard]] std::string what() const override;

 private:
  const char* function_;
  MixedRequests* requests_; // null: none is a token
};

} // namespace ferry::interpose
