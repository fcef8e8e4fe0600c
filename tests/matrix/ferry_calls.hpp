// SPDX-License-Identifier: MIT
// The calls of calls.hpp by the functions of ferry.h.
#pragma once

#include <ferry/ferry.h>

#include "calls.hpp"

namespace ferry::test {

// `form.large` is not looked at: ferry.h has large counts only.
int make_ferry_call(const Call& call, ferry_request* request);

} // namespace ferry::test
