// SPDX-License-Identifier: MIT
#pragma once

// Prints what a self-test of the GPUs of this machine says; the exit code of the program.
[[nodiscard]] int self_test();
