// SPDX-License-Identifier: MIT
#include "lib/api/report.hpp"

#include <fmt/format.h>
#include <cstdio>

#include "lib/api/state.hpp"

namespace ferry::core {
namespace {

int error_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::none:
      return MPI_SUCCESS;
    case ErrorKind::buffer:
      return MPI_ERR_BUFFER;
    case ErrorKind::count:
      return MPI_ERR_COUNT;
    case ErrorKind::type:
      return MPI_ERR_TYPE;
    case ErrorKind::root:
      return MPI_ERR_ROOT;
    case ErrorKind::comm:
      return MPI_ERR_COMM;
    case ErrorKind::request:
      return MPI_ERR_REQUEST;
    case ErrorKind::argument:
      return MPI_ERR_ARG;
    case ErrorKind::mismatch:
      return MPI_ERR_TRUNCATE;
    case ErrorKind::no_memory:
      return MPI_ERR_NO_MEM;
    case ErrorKind::configuration:
      return MPI_ERR_OTHER;
    case ErrorKind::peer_died:
      return MPI_ERR_OTHER;
    case ErrorKind::timeout:
      return MPI_ERR_OTHER;
    case ErrorKind::bad_packet:
      return MPI_ERR_INTERN;
    case ErrorKind::below:
      return MPI_ERR_OTHER;
    case ErrorKind::other:
      return MPI_ERR_OTHER;
  }
  return MPI_ERR_OTHER;
}

std::string& text_of_thread() {
  thread_local std::string text;
  return text;
}

std::string describe(const CallSite& site, const Status& status) {
  std::string where;
  if (site.comm != MPI_COMM_NULL) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(site.comm, &rank);
    PMPI_Comm_size(site.comm, &size);
    where = fmt::format("rank {} of {}: ", rank, size);
  }
  const char* separator = status.remedy.empty() ? "" : "; ";
  return fmt::format("{}: {}{}{}{}", site.function, where, status.cause, separator, status.remedy);
}

// A fatal handler prints what MPI knows, which is the class; say the rest before it ends the job.
void tell_before_fatal(MPI_Comm comm, const std::string& text) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return;
  if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT) {
    std::fprintf(stderr, "ferry: %s\n", text.c_str());
  }
  if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
}

} // namespace

const char* last_error_text() noexcept {
  return text_of_thread().c_str();
}

int report(const CallSite& site, const Status& status) {
  const int code = error_class(status.kind);
  if (!mpi_runs(site.comm)) {
    text_of_thread() = describe({site.function, MPI_COMM_NULL, true}, status);
    return code;
  }
  text_of_thread() = describe(site, status);
  if (site.quiet || status.kind == ErrorKind::below) return code;
  const MPI_Comm comm = site.comm == MPI_COMM_NULL ? MPI_COMM_SELF : site.comm;
  tell_before_fatal(comm, text_of_thread());
  const Outside scope;
  PMPI_Comm_call_errhandler(comm, site.in_status ? MPI_ERR_IN_STATUS : code);
  return code;
}

} // namespace ferry::core
