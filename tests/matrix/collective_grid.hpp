// SPDX-License-Identifier: MIT
// The grid of one collective of ferry.h: sizes, communicators, roots, kinds of memory, datatypes
// that differ from rank to rank, in place or not. The oracle is that of the matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ferry_calls.hpp"

namespace ferry::test {

// All points of one form.
void run_collective(Coll coll, Way way);
void run_collective(Coll coll, Way way, const std::vector<std::int64_t>& sizes);

// A call that was made, up to its end; the code of whatever failed first.
[[nodiscard]] int complete_call(const Call& call, ferry_request* request, bool by_wait);

} // namespace ferry::test
