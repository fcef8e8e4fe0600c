// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "include/ferry/ferry.h"
#include "lib/interpose/next.hpp"
#include "lib/interpose/token.hpp"

// A function of MPI that takes requests, under both names. As long as no token is alive its price
// is one branch; then `ours(next, name, arguments...)` runs.
#define FERRY_HANDLES(symbol, parameters, arguments, ours)         \
  FERRY_HANDLE_ENTRY(symbol, #symbol, parameters, arguments, ours) \
  FERRY_HANDLE_ENTRY(P##symbol, #symbol, parameters, arguments, ours)

// The short way holds two looks and a jump, so what is behind it stands in a function of its own.
#define FERRY_HANDLE_ENTRY(symbol, name, parameters, arguments, ours) \
  namespace {                                                         \
  constinit std::atomic<decltype(&symbol)> next_##symbol{nullptr};    \
  [[gnu::noinline]] int beside_tokens_##symbol parameters {           \
    FERRY_NEXT(symbol);                                               \
    next_##symbol.store(next, std::memory_order_relaxed);             \
    if (!ferry::interpose::any_token()) return next arguments;        \
    return ours(next, name, FERRY_UNPACK arguments);                  \
  }                                                                   \
  }                                                                   \
  extern "C" FERRY_API int symbol parameters {                        \
    const auto next = next_##symbol.load(std::memory_order_relaxed);  \
    if (next != nullptr && !ferry::interpose::any_token()) [[likely]] \
      return next arguments;                                          \
    return beside_tokens_##symbol arguments;                          \
  }

#define FERRY_UNPACK(...) __VA_ARGS__
