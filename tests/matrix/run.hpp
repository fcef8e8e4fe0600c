// SPDX-License-Identifier: MIT
// What a run of this program is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "../support/world.hpp"
#include "configuration.hpp"

namespace ferry::test {

inline std::uint64_t number(const char* name, std::uint64_t otherwise) {
  return std::stoull(environment(name, std::to_string(otherwise).c_str()));
}

// Whether a variable names a collective: "all", or a list with commas.
inline bool named_in(const char* variable, const char* otherwise, Coll coll) {
  const std::string names = "," + environment(variable, otherwise) + ",";
  return names == ",all," || names.find("," + name_of(Form{coll}) + ",") != std::string::npos;
}

// TEST_BELOW: what the MPI below does.
inline bool done_below(Coll coll) {
  return named_in("TEST_BELOW", "", coll);
}

inline bool left_out(const Configuration& c, const Comm& comm) {
  return done_below(c.form.coll) ? wrong_below(c, comm) : wrong_beside(c);
}

// TEST_COLLECTIVES: what is looked at.
inline bool wanted(Coll coll) {
  return named_in("TEST_COLLECTIVES", "all", coll);
}

} // namespace ferry::test
