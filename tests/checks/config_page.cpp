// SPDX-License-Identifier: MIT
// Prints doc/environment.md as lib/config/config.def says it.
#include <cstdio>

#include "lib/config/config.hpp"

int main() {
  const std::string page = ferry::core::describe_config(ferry::core::Format::markdown);
  return std::fputs(page.c_str(), stdout) < 0 ? 1 : 0;
}
