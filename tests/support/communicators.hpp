// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <mpi.h>

#include "world.hpp"

namespace ferry::test {

// A communicator that frees itself; MPI_COMM_NULL where this rank is no member.
class Comm {
 public:
  explicit Comm(MPI_Comm comm, const char* name = "") : comm_(comm), name_(name) {
    if (comm_ == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  Comm(Comm&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
        name_(other.name_),
        rank_(other.rank_),
        size_(other.size_) {}
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  Comm& operator=(Comm&&) = delete;
  ~Comm() { free(); }

  void free() {
    if (comm_ != MPI_COMM_NULL && comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
    comm_ = MPI_COMM_NULL;
  }
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  [[nodiscard]] bool member() const { return comm_ != MPI_COMM_NULL; }
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

 private:
  MPI_Comm comm_;
  const char* name_;
  int rank_ = 0;
  int size_ = 0;
};

inline Comm split(int color, int key, const char* name = "split") {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  return Comm(comm, name);
}

inline Comm duplicate(MPI_Comm from = MPI_COMM_WORLD) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(from, &comm);
  return Comm(comm, "dup");
}

inline std::vector<Comm>& zoo_storage() {
  static std::vector<Comm> storage;
  return storage;
}

// The kinds of communicators of every grid (case 65). Built once, collectively, at the first use,
// since each costs tens of milliseconds where ranks outnumber cores.
inline const std::vector<Comm>& zoo() {
  auto& all = zoo_storage();
  if (!all.empty()) return all;
  const int rank = world().rank;
  all.emplace_back(MPI_COMM_WORLD, "world");
  all.push_back(duplicate());
  all.push_back(split(rank % 2, rank, "even/odd"));
  all.push_back(split(0, -rank, "reversed"));
  all.push_back(split(rank, 0, "single"));
  all.push_back(split(rank == 0 ? MPI_UNDEFINED : 0, rank, "without rank 0"));
  return all;
}

inline void free_zoo() {
  zoo_storage().clear();
}

} // namespace ferry::test
