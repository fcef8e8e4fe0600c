// SPDX-License-Identifier: MIT
// All the ways in which a program waits for several requests.
#pragma once

#include <string>
#include <vector>

#include <mpi.h>

#include "../support/seeded.hpp"

namespace ferry::test {

enum class Completion { waitall, waitany, waitsome, testall, testany, testsome, wait, test };
inline constexpr int kCompletions = 8;
[[nodiscard]] const char* name_of(Completion how);

struct Completed {
  std::vector<MPI_Status> statuses;
  std::vector<int> times; // how often each request was told complete
  std::string problem; // of the calls themselves
};

// Until all are complete; null and inactive ones may be among them, and only an array call leaves
// their `times` at 0.
[[nodiscard]] Completed complete(Completion how, Dice& dice, std::vector<MPI_Request>& requests);

} // namespace ferry::test
