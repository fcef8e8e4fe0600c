// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

namespace ferry::interpose {

// The function of that name behind this library: of a tool in between, or of the MPI below. Null
// when there is none.
template <class Function>
[[nodiscard]] Function find_next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// What a call returns that has nowhere to go: the MPI below is older than the program.
int report_missing(const char* function);

} // namespace ferry::interpose

// In a function that stands in for `symbol`: the next one in line, looked up once.
#define FERRY_NEXT(symbol)                                                          \
  static const auto next = ferry::interpose::find_next<decltype(&symbol)>(#symbol); \
  if (next == nullptr) return ferry::interpose::report_missing(#symbol)
