// SPDX-License-Identifier: MIT
#include "lib/interpose/take.hpp"

#include <cstdio>

#include "lib/api/report.hpp"
#include "lib/config/config.hpp"
#include "lib/interpose/next.hpp"
#include "lib/interpose/progress.hpp"
#include "lib/interpose/tally.hpp"
#include "lib/interpose/token.hpp"

namespace ferry::interpose {
namespace {

// FERRY=off. A wrong environment is not off: its error comes with the call.
bool switched_off() {
  static const bool off = [] {
    try {
      return !core::config().enabled;
    } catch (const core::Failure&) {
      return false;
    }
  }();
  return off;
}

// "slots" of "slots: why", of the operation or of the last one on the communicator.
std::string path_of(const Call& call, ferry_request operation) {
  char text[256] = {};
  const int code = operation != nullptr ? ferry_explain(operation, text, sizeof text)
                                        : ferry_comm_explain(call.comm, text, sizeof text);
  const std::string whole = code == MPI_SUCCESS ? text : "";
  return whole.substr(0, whole.find(':'));
}

void count_taken(const Call& call, ferry_request operation, MPI_Request request) {
  const auto tally = tallies_of(call.comm)->of(call.function);
  const std::string path = path_of(call, operation);
  if (call.form != Form::persistent) {
    tally->taken(path);
    return;
  }
  tally->made();
  Token* token = find_token(request);
  token->tally = tally;
  token->path = path;
}

int run(const Call& call, MPI_Request* request) {
  ferry_request operation = nullptr;
  if (const int code = core::run_call(call, &operation); code != MPI_SUCCESS) return code;
  if (call.form != Form::blocking) *request = make_token(operation, call);
  if (tallying()) count_taken(call, operation, request != nullptr ? *request : MPI_REQUEST_NULL);
  return MPI_SUCCESS;
}

} // namespace

Verdict take(const Call& call, MPI_Request* request) {
  if (core::inside.depth > 0 || switched_off()) return {};
  if (call.form != Form::blocking && request == nullptr) return {}; // an error of the MPI below
  Verdict verdict;
  verdict.code = core::guarded({call.function, call.comm, call.quiet}, [&] {
    const char* why = nullptr;
    core::Carrier carrier = core::Carrier::ferry;
    try {
      carrier = core::carrier_of(call, &why);
      verdict.taken = carrier != core::Carrier::below;
    } catch (const core::Failure& failure) {
      if (failure.status().kind != core::ErrorKind::configuration) return MPI_SUCCESS;
      verdict.taken = true;
      throw;
    }
    if (carrier == core::Carrier::ferry) return run(call, request);
    if (call.form == Form::blocking) note_wait();
    if (carrier == core::Carrier::below_packed) return core::run_packed(call); // comes back here
    if (tallying()) tallies_of(call.comm)->of(call.function)->passed(why);
    return MPI_SUCCESS;
  });
  if (verdict.code != MPI_SUCCESS && request != nullptr) *request = MPI_REQUEST_NULL;
  return verdict;
}

int report_missing(const char* function) {
  std::fprintf(
      stderr,
      "ferry: there is no %s behind libferry-mpi.so; run the program with an MPICH that has it\n",
      function);
  return MPI_ERR_OTHER;
}

} // namespace ferry::interpose
