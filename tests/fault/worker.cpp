// SPDX-License-Identifier: MIT
// The program that the fault scripts start, stop and kill. It prints one line per fact, begun with
// "rank R:", and leaves with kErrorExit when Ferry returned an error, without MPI_Finalize, which
// would wait for ranks that are gone.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <ferry/ferry.h>
#include <mpi.h>
#include <unistd.h>

#include "../support/communicators.hpp"
#include "../support/pattern.hpp"

namespace {

using namespace ferry::test;

constexpr int kErrorExit = 3;
constexpr int kWrongDataExit = 4;
constexpr unsigned kLimitSeconds = 60;
constexpr unsigned kSecondsForOthers = 2;
constexpr std::size_t kSmall = 24;
constexpr std::size_t kLarge = 200000;

void say(const std::string& text) {
  const std::string line = "rank " + std::to_string(world().rank) + ": " + text + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void require(int code) {
  if (code == MPI_SUCCESS) return;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  say("error of class " + std::to_string(error_class) + ": " + ferry_error_text());
  // Stay until the others too have seen the first failure, and not the end of this rank.
  sleep(kSecondsForOthers);
  _exit(kErrorExit);
}

// Memory of ferry_alloc, or of malloc with a line that says why not.
unsigned char* allocate(std::size_t bytes) {
  unsigned char* base = nullptr;
  if (ferry_alloc(static_cast<MPI_Aint>(bytes), &base) == MPI_SUCCESS) return base;
  say(std::string("no shared memory: ") + ferry_error_text());
  return static_cast<unsigned char*>(std::malloc(bytes));
}

// Buffers of one alltoall and one broadcast, checked against the pattern.
class Work {
 public:
  explicit Work(std::size_t bytes)
      : bytes_(bytes),
        all_(bytes * static_cast<std::size_t>(world().size)),
        send_(allocate(all_)),
        recv_(allocate(all_)) {}

  void run(std::uint64_t iteration, MPI_Comm comm) {
    const int size = world().size;
    const int rank = world().rank;
    const auto count = static_cast<MPI_Count>(bytes_);
    poison(recv_, all_, iteration);
    for (int j = 0; j < size; ++j) fill(send_ + block(j), bytes_, {iteration, rank, j});
    require(ferry_alltoall(send_, count, MPI_BYTE, recv_, count, MPI_BYTE, comm));
    for (int j = 0; j < size; ++j) check(recv_ + block(j), {iteration, j, rank});
    const int root = static_cast<int>(iteration % static_cast<std::uint64_t>(size));
    poison(recv_, bytes_, iteration);
    if (rank == root) fill(recv_, bytes_, {iteration, root, kEveryone});
    require(ferry_bcast(recv_, count, MPI_BYTE, root, comm));
    check(recv_, {iteration, root, kEveryone});
  }

 private:
  [[nodiscard]] std::size_t block(int rank) const {
    return static_cast<std::size_t>(rank) * bytes_;
  }
  void check(const unsigned char* data, Stream expected) const {
    if (!first_difference(data, bytes_, expected)) return;
    say("wrong data from rank " + std::to_string(expected.sender));
    _exit(kWrongDataExit);
  }

  std::size_t bytes_;
  std::size_t all_;
  unsigned char* send_;
  unsigned char* recv_;
};

// Everything once; the environment is read once, so that a change of it later does nothing.
void run_once() {
  Work small(kSmall);
  Work large(kLarge);
  Work huge(4 << 20);
  small.run(1, MPI_COMM_WORLD);
  setenv("FERRY_ENGINE", "changed after the first call", 1);
  const Comm other = duplicate();
  small.run(2, other.get());
  large.run(3, MPI_COMM_WORLD);
  huge.run(4, MPI_COMM_WORLD);
  say("right");
}

// Until rank 0 says that the seconds are over.
void run_loop(double seconds) {
  Work small(kSmall);
  Work large(kLarge);
  const auto begin = std::chrono::steady_clock::now();
  say("pid " + std::to_string(getpid()));
  int more = 1;
  for (std::uint64_t i = 0; more != 0; ++i) {
    (i % 8 == 7 ? large : small).run(i, MPI_COMM_WORLD);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (world().rank == 0) more = passed.count() < seconds ? 1 : 0;
    require(ferry_bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
  }
  say("right");
}

// The last rank does one alltoall less than the others.
void run_absent(double seconds) {
  Work small(kSmall);
  small.run(1, MPI_COMM_WORLD);
  if (world().rank == world().size - 1) {
    sleep(static_cast<unsigned>(seconds));
    say("stayed away");
    _exit(EXIT_SUCCESS);
  }
  small.run(2, MPI_COMM_WORLD);
  say("returned without an error");
}

// Many communicators that live at once, each used.
void run_communicators(int count) {
  Work small(kSmall);
  std::vector<Comm> comms;
  for (int i = 0; i < count; ++i) {
    comms.push_back(duplicate());
    small.run(static_cast<std::uint64_t>(i), comms.back().get());
  }
  say("right");
}

} // namespace

int main(int argc, char** argv) {
  alarm(kLimitSeconds);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const char* amount = argc > 2 ? argv[2] : "1";
  if (mode == "once") run_once();
  if (mode == "loop") run_loop(std::atof(amount));
  if (mode == "absent") run_absent(std::atof(amount));
  if (mode == "communicators") run_communicators(std::atoi(amount));
  MPI_Finalize();
  return EXIT_SUCCESS;
}
