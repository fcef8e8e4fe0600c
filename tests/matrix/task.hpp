// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include "configuration.hpp"

namespace ferry::test {

// Something that a program has under way, with one request.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  virtual void prepare(std::uint64_t iteration) = 0;
  // Begins it, or makes its persistent request.
  virtual int make(MPI_Request* request) = 0;
  [[nodiscard]] virtual std::string problem(const MPI_Status& status) const = 0;
  // Tasks of one communicator begin in the same order on all ranks; -1: in any order.
  [[nodiscard]] virtual int communicator() const = 0;
  [[nodiscard]] virtual bool persistent() const = 0;
  [[nodiscard]] virtual std::string text() const = 0;
};

[[nodiscard]] std::unique_ptr<Task> make_collective(
    const Configuration& c, const Comm& comm, int communicator);

// Half of a message to the rank `distance` behind, around the ring of the world.
struct Message {
  int distance = 1;
  int tag = 0;
  std::size_t bytes = 0;
  bool sends = false;
  bool persistent = false;
};
[[nodiscard]] std::unique_ptr<Task> make_message(const Message& message);

} // namespace ferry::test
