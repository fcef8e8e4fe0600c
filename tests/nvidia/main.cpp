// SPDX-License-Identifier: MIT
// Skips, with a reason, what the GPUs of this machine do not allow: nothing without one, and the
// cases whose name begins with "pair" with only one.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/nvidia/process_team.hpp"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  const int gpus = ferry::test::visible_gpus();
  if (gpus == 0) {
    std::puts("skipped: no NVIDIA GPU or driver on this machine");
    return kSkipped;
  }
  doctest::Context context(argc, argv);
  context.setOption("no-path-filenames", true);
  if (gpus == 1) {
    std::puts("one GPU: cases of pairs are left out");
    context.addFilter("test-case-exclude", "pair*");
  }
  return context.run();
}
