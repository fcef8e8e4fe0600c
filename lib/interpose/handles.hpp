// SPDX-License-Identifier: MIT
#pragma once

#include "include/ferry/ferry.h"
#include "lib/interpose/next.hpp"
#include "lib/interpose/token.hpp"

// A function of MPI that takes requests, under both names. As long as no token is alive its price
// is one branch; then `ours(next, name, arguments...)` runs.
#define FERRY_HANDLES(symbol, parameters, arguments, ours)         \
  FERRY_HANDLE_ENTRY(symbol, #symbol, parameters, arguments, ours) \
  FERRY_HANDLE_ENTRY(P##symbol, #symbol, parameters, arguments, ours)

#define FERRY_HANDLE_ENTRY(symbol, name, parameters, arguments, ours) \
  extern "C" FERRY_API int symbol parameters {                        \
    FERRY_NEXT(symbol);                                               \
    if (!ferry::interpose::any_token()) [[likely]]                    \
      return next arguments;                                          \
    return ours(next, name, FERRY_UNPACK arguments);                  \
  }

#define FERRY_UNPACK(...) __VA_ARGS__
