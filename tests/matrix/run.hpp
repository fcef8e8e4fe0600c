// SPDX-License-Identifier: MIT
// What a run of this program is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "../support/world.hpp"
#include "calls.hpp"

namespace ferry::test {

inline std::uint64_t number(const char* name, std::uint64_t otherwise) {
  return std::stoull(environment(name, std::to_string(otherwise).c_str()));
}

// TEST_BELOW names the collectives that the MPI below does: all of them or a list with commas.
inline bool done_below(Coll coll) {
  const std::string names = "," + environment("TEST_BELOW", "") + ",";
  return names == ",all," || names.find("," + name_of(Form{coll}) + ",") != std::string::npos;
}

} // namespace ferry::test
