// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <string>

#include "lib/base/error.hpp"
#include "lib/base/inside.hpp"

namespace ferry::core {

// Where an error came up and how it is to be reported.
struct CallSite {
  const char* function = "";
  MPI_Comm comm = MPI_COMM_NULL; // MPI_COMM_NULL: reported on MPI_COMM_SELF
  bool quiet = false; // FERRY_NO_ERROR_HANDLER
  bool in_status = false; // the class is in a status, the call itself gives MPI_ERR_IN_STATUS
};

// Keeps the text for ferry_error_text(), calls the error handler once, returns the error class.
int report(const CallSite& site, const Status& status);

// The text of the last error of this thread.
[[nodiscard]] const char* last_error_text() noexcept;

// Runs a function that may throw; every error comes back as a class, nothing escapes into C.
template <class Function>
int guarded(const CallSite& site, Function function) {
  const Inside scope;
  try {
    return function();
  } catch (const Failure& failure) {
    return report(site, failure.status());
  } catch (const std::exception& error) {
    return report(site, {ErrorKind::other, error.what(), "please report this"});
  }
}

} // namespace ferry::core
