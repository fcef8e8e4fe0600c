// SPDX-License-Identifier: MIT
#pragma once

#include "include/ferry/ferry.h"
#include "lib/interpose/next.hpp"
#include "lib/interpose/take.hpp"

// The functions of MPI that stand in for those of the MPI below, made of collectives.def. A file
// that includes this defines FERRY_COLLECTIVE by FERRY_FORMS, with names of its own.

#define FERRY_STRIP(...) __VA_ARGS__

// Both names: mpi_f08 calls PMPI_ where a collective has no buffer, tools call it everywhere.
#define FERRY_BOTH(symbol, form, operation, parameters, arguments, description, request)     \
  FERRY_ENTRY(symbol, #symbol, form, operation, parameters, arguments, description, request) \
  FERRY_ENTRY(P##symbol, #symbol, form, operation, parameters, arguments, description, request)

#define FERRY_ENTRY(symbol, name, form, operation, parameters, arguments, description, request) \
  extern "C" FERRY_API int symbol(FERRY_STRIP parameters) {                                     \
    using namespace ferry::interpose;                                                           \
    FERRY_NEXT(symbol);                                                                         \
    const Call call{name, Operation::operation, Form::form, comm, FERRY_STRIP description};     \
    if (const Verdict verdict = take(call, request); verdict.taken) return verdict.code;        \
    return next(FERRY_STRIP arguments);                                                         \
  }

// The forms of one collective: the three names, then its line of collectives.def.
#define FERRY_FORMS(                                                                             \
    blocking_name, nonblocking_name, persistent_name, operation, parameters, arguments,          \
    description)                                                                                 \
  FERRY_BOTH(blocking_name, blocking, operation, parameters, arguments, description, nullptr)    \
  FERRY_BOTH(                                                                                    \
      nonblocking_name, nonblocking, operation, (FERRY_STRIP parameters, MPI_Request * request), \
      (FERRY_STRIP arguments, request), description, request)                                    \
  FERRY_BOTH(                                                                                    \
      persistent_name, persistent, operation,                                                    \
      (FERRY_STRIP parameters, MPI_Info info, MPI_Request * request),                            \
      (FERRY_STRIP arguments, info, request), description, request)
