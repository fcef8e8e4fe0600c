// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <mpi.h>

namespace ferry::test {

struct World {
  int rank = 0;
  int size = 1;
};

// Rank and size in MPI_COMM_WORLD; the first call must come after MPI_Init.
inline const World& world() {
  static const World instance = [] {
    World w;
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.size);
    return w;
  }();
  return instance;
}

inline std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// True where an MPI call costs a scheduler slice (more ranks than this suite expects cores) or
// where the run asked for it with TEST_GRID=small: loops then take a sample and not everything.
inline bool small_grid() {
  static const bool small = world().size > 4 || environment("TEST_GRID", "") == "small";
  return small;
}

// With FERRY=off the MPI below does the work, with its own rules for what is an error.
inline bool ferry_is_off() {
  return environment("FERRY", "on") == "off";
}

// The last operation of this rank, for the report of the time limit; read by a signal handler, so
// it lives in a fixed array that always ends in a 0.
inline constexpr std::size_t kNoteBytes = 256;
inline char* note_text() {
  static char text[kNoteBytes] = "";
  return text;
}
inline void note(const std::string& text) {
  char* target = note_text();
  const std::size_t length = text.size() < kNoteBytes - 1 ? text.size() : kNoteBytes - 1;
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

} // namespace ferry::test
