// SPDX-License-Identifier: MIT
#include "lib/api/state.hpp"

#include <pthread.h>
#include <atomic>
#include <cstdint>
#include <cstdio>

#include "lib/base/error.hpp"
#include "lib/base/mpi_bootstrap.hpp"
#include "lib/topology/launcher.hpp"

namespace ferry::core {
namespace {

std::atomic<std::uint64_t> deleted{0}; // states, so far

// The communicator of this thread's last call, found without asking MPI as long as no state went.
struct LastState {
  MPI_Comm comm = MPI_COMM_NULL;
  std::uint64_t deleted = 0;
  StateHolder* holder = nullptr;
};
__attribute__((tls_model("initial-exec"))) thread_local LastState last_state;

int delete_state(MPI_Comm, int, void* value, void*) {
  deleted.fetch_add(1);
  auto* holder = static_cast<StateHolder*>(value);
  (*holder)->detach();
  delete holder;
  return MPI_SUCCESS;
}

std::atomic<bool> finalized{false};
std::atomic<bool> in_child{false}; // of a fork: MPI and the mappings of peers belong to the parent

int note_finalize(MPI_Comm, int, void*, void*) {
  finalized.store(true, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

// Once, by the process that the launcher counts as its first.
void warn_of_launcher(int world) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  const LauncherVariable get = launcher_variable;
  const std::string line = world == 1 ? launcher_complaint(world, get) : gpu_complaint(get);
  if (!line.empty()) std::fprintf(stderr, "ferry: %s\n", line.c_str());
}

// Throws Failure unless MPI runs.
void require_mpi(MPI_Comm comm) {
  if (mpi_runs(comm)) return;
  int down = 0;
  PMPI_Finalized(&down);
  throw Failure(
      ErrorKind::other, down == 0 ? "MPI is not initialised" : "MPI is finalised already",
      "call this between MPI_Init and MPI_Finalize");
}

// MPI_Finalize begins with the attributes of MPI_COMM_SELF: a cheap way to know that MPI is up.
// Sessions have no MPI_COMM_SELF.
void watch_finalize() {
  int up = 0;
  PMPI_Initialized(&up);
  if (up == 0) return;
  int world = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &world);
  warn_of_launcher(world);
  int watch = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_finalize, &watch, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, watch, nullptr);
  PMPI_Comm_free_keyval(&watch);
}

int make_keyval(MPI_Comm comm) {
  require_mpi(comm);
  watch_finalize();
  pthread_atfork(nullptr, nullptr, [] { in_child.store(true, std::memory_order_relaxed); });
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_state, &keyval, nullptr);
  return keyval;
}

int keyval(MPI_Comm comm) {
  static const int value = make_keyval(comm);
  return value;
}

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return length > 0 ? std::string(name) : std::string("an unnamed communicator");
}

bool threaded() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

} // namespace

bool mpi_runs(MPI_Comm comm) {
  int up = 0;
  int down = 0;
  PMPI_Initialized(&up);
  PMPI_Finalized(&down);
  const bool predefined = comm == MPI_COMM_NULL || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF;
  return (up != 0 || !predefined) && down == 0;
}

StateHolder* find_state(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  if (finalized.load(std::memory_order_relaxed)) require_mpi(comm);
  if (in_child.load(std::memory_order_relaxed)) {
    throw Failure(
        ErrorKind::other, "this process was forked from one that uses Ferry",
        "call Ferry in the parent, or let the child execute a program of its own");
  }
  const std::uint64_t now = deleted.load();
  if (last_state.comm == comm && last_state.deleted == now) return last_state.holder;
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, keyval(comm), &value, &found);
  if (found == 0) return nullptr;
  last_state = {comm, now, static_cast<StateHolder*>(value)};
  return last_state.holder;
}

int check_communicator(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) {
    throw Failure(ErrorKind::comm, "the communicator is MPI_COMM_NULL", "pass a communicator");
  }
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter != 0) {
    throw Failure(
        ErrorKind::comm, "this is an intercommunicator", "use the collective of MPI for it");
  }
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  return ranks;
}

StateHolder* make_state(MPI_Comm comm) {
  auto holder = std::make_unique<StateHolder>(
      std::make_shared<Communicator>(make_mpi_bootstrap(comm), comm, name_of(comm), threaded()));
  register_active(*holder);
  PMPI_Comm_set_attr(comm, keyval(comm), holder.get());
  return holder.release();
}

} // namespace ferry::core
