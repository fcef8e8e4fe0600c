// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <initializer_list>
#include <string>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "communicators.hpp"

namespace ferry::test {

inline int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// A code of this class with a text that names the function and this rank, holds all the words, and
// ends in a remedy, behind the semicolon.
inline void check_error(
    int code, int error_class, const std::string& function, const Comm& comm,
    std::initializer_list<const char*> words) {
  CHECK(class_of(code) == error_class);
  if (code == MPI_SUCCESS) return;
  const std::string text = ferry_error_text();
  const std::string rank =
      "rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size());
  CHECK_MESSAGE(text.find(function + ": ") == 0, text);
  CHECK_MESSAGE(text.find(rank) != std::string::npos, text);
  const std::size_t remedy = text.find("; ");
  CHECK_MESSAGE((remedy != std::string::npos && remedy + 5 < text.size()), text);
  for (const char* word : words) {
    CHECK_MESSAGE(text.find(word) != std::string::npos, std::string(word), " in: ", text);
  }
}

inline std::atomic<int>& handler_calls() {
  static std::atomic<int> calls{0};
  return calls;
}

inline int& handler_code() {
  static int code = MPI_SUCCESS;
  return code;
}

// Counts the calls of the error handler of a communicator of its own.
class HandledComm {
 public:
  HandledComm() : comm_(duplicate()) {
    MPI_Comm_create_errhandler(&HandledComm::on_error, &handler_);
    MPI_Comm_set_errhandler(comm_.get(), handler_);
    handler_calls() = 0;
  }
  HandledComm(const HandledComm&) = delete;
  HandledComm& operator=(const HandledComm&) = delete;
  ~HandledComm() {
    MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler_);
  }
  [[nodiscard]] const Comm& comm() const { return comm_; }
  // Calls since the last time that this was asked.
  [[nodiscard]] static int calls() { return handler_calls().exchange(0); }

 private:
  static void on_error(MPI_Comm* /*comm*/, int* code, ...) {
    ++handler_calls();
    handler_code() = *code;
  }

  Comm comm_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

} // namespace ferry::test
