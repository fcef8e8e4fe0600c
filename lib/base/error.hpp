// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace ferry::core {

// What went wrong, independent of MPI; lib/api maps each to an MPI error class.
enum class ErrorKind {
  none = 0,
  buffer,
  count,
  type,
  root,
  comm,
  request,
  argument,
  mismatch,
  no_memory,
  configuration,
  peer_died,
  timeout,
  bad_packet,
  below, // the MPI below failed, and has called the error handler already
  other,
};

// The outcome of a data-path operation (start, test, wait): no exception, no allocation when fine.
struct Status {
  ErrorKind kind = ErrorKind::none;
  std::string cause;
  std::string remedy;
  [[nodiscard]] bool ok() const noexcept { return kind == ErrorKind::none; }
};

// Thrown on the control path (create, plan); lib/api catches it, adds function and rank, and hands
// it to the communicator's error handler.
class Failure : public std::exception {
 public:
  Failure(ErrorKind kind, std::string cause, std::string remedy = {})
      : status_{kind, std::move(cause), std::move(remedy)} {}
  explicit Failure(Status status) : status_(std::move(status)) {}
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return status_.cause.c_str(); }

 private:
  Status status_;
};

} // namespace ferry::core
