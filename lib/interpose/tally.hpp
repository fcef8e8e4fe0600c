// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ferry::interpose {

// What became of the calls of one function on one communicator.
class Tally {
 public:
  void taken(const std::string& path);
  void made(); // a persistent operation,
  void started(const std::string& path); // and each of its starts
  void passed(const char* why);
  [[nodiscard]] std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t taken_ = 0;
  std::uint64_t starts_ = 0;
  std::map<std::string, std::uint64_t> paths_;
  std::map<std::string, std::uint64_t> passed_;
};

// The tallies of a communicator. Printed when the communicator is freed, or at the latest when MPI
// is finalised.
class CommTally {
 public:
  explicit CommTally(MPI_Comm comm);
  [[nodiscard]] std::shared_ptr<Tally> of(const char* function);
  void print() const;

 private:
  mutable std::mutex mutex_;
  std::string name_;
  int rank_ = 0;
  int ranks_ = 0;
  std::map<std::string, std::shared_ptr<Tally>> tallies_;
};

// FERRY_VERBOSE asks for tallies on some rank.
[[nodiscard]] bool tallying();
// Those of a communicator, made at the first call.
[[nodiscard]] std::shared_ptr<CommTally> tallies_of(MPI_Comm comm);

} // namespace ferry::interpose
