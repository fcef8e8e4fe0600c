// SPDX-License-Identifier: MIT
#include "tests/nvidia/process_team.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

#include "lib/base/clock.hpp"
#include "lib/base/error.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::test {

namespace {

constexpr std::size_t kMessage = 16 * 1024; // of one rank, in an allgather
constexpr int kMostRanks = 64;
constexpr std::size_t kRoom = std::size_t{512} << 20; // of shared blocks of one rank; not touched
constexpr double kMeetSeconds = 60;

} // namespace

struct ProcessTeam::Board {
  int ranks = 0;
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<int> dead{-1};
  char messages[2][kMostRanks][kMessage];
};

int ProcessTeam::ranks() const {
  return board_->ranks;
}

// Everybody adds one; meeting n is over at n * ranks.
void ProcessTeam::barrier() {
  const auto all = static_cast<std::uint64_t>(board_->ranks);
  const std::uint64_t mine = board_->arrived.fetch_add(1) + 1;
  const std::uint64_t target = (mine + all - 1) / all * all;
  const double until = core::now_seconds() + kMeetSeconds;
  for (; board_->arrived.load() < target;) {
    if (core::now_seconds() > until) {
      throw core::Failure(core::ErrorKind::timeout, "a rank does not come to the meeting");
    }
    sched_yield();
  }
}

void ProcessTeam::allgather(const void* mine, std::size_t bytes, void* all) {
  if (bytes > kMessage) throw core::Failure(core::ErrorKind::argument, "too long a message");
  std::memcpy(board_->messages[0][rank_], mine, bytes);
  barrier();
  for (int rank = 0; rank < ranks(); ++rank) {
    std::memcpy(
        static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes, board_->messages[0][rank],
        bytes);
  }
  barrier();
}

void ProcessTeam::share(std::size_t bytes) {
  const std::size_t pages = (bytes + 4095) / 4096 * 4096;
  if (used_ + pages > kRoom) throw core::Failure(core::ErrorKind::no_memory, "no room is left");
  shared_ = used_;
  used_ += pages;
  barrier();
}

std::byte* ProcessTeam::block(int rank) const {
  auto* const first = reinterpret_cast<std::byte*>(board_) + (sizeof(Board) + 4095) / 4096 * 4096;
  return first + static_cast<std::size_t>(rank) * kRoom + shared_;
}

core::Status ProcessTeam::check_alive() const {
  const int dead = board_->dead.load();
  if (dead < 0) return {};
  return {core::ErrorKind::peer_died, "rank " + std::to_string(dead) + " has ended", ""};
}

namespace {

int run_rank(const Job& job, ProcessTeam::Board* board, int rank) {
  alarm(static_cast<unsigned>(job.seconds) + 5);
  try {
    job.set_up(rank);
    ProcessTeam team(board, rank);
    return job.body(team);
  } catch (const core::Failure& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.status().cause.c_str());
  }
  return 1;
}

// In a process of its own, as ranks are.
int run_threads(const Job& job, ProcessTeam::Board* board) {
  std::atomic<int> worst{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < board->ranks; ++rank) {
    ranks.emplace_back([&, rank] {
      if (run_rank(job, board, rank) != 0) worst = 1;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return worst;
}

} // namespace

std::vector<int> run_job(const Job& job) {
  const std::size_t bytes = (sizeof(ProcessTeam::Board) + 4095) / 4096 * 4096 +
                            kRoom * static_cast<std::size_t>(job.ranks);
  void* const memory = mmap(
      nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::vector<int>(static_cast<std::size_t>(job.ranks), -2);
  auto* const board = new (memory) ProcessTeam::Board;
  board->ranks = job.ranks;
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < (job.threads ? 1 : job.ranks); ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int result = job.threads ? run_threads(job, board) : run_rank(job, board, rank);
      std::fflush(nullptr);
      _exit(result);
    }
    pids.push_back(pid);
  }
  std::vector<int> results(pids.size(), -1);
  std::size_t left = pids.size();
  const double until = core::now_seconds() + job.seconds;
  for (; left > 0 && core::now_seconds() < until; usleep(1000)) {
    for (std::size_t i = 0; i < pids.size(); ++i) {
      int status = 0;
      if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i]) continue;
      results[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      if (results[i] != 0) board->dead = static_cast<int>(i);
      pids[i] = 0;
      --left;
    }
  }
  for (const pid_t pid : pids) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  munmap(memory, bytes);
  return results;
}

int visible_gpus() {
  Job job;
  job.ranks = 1;
  job.body = [](ProcessTeam&) {
    int devices = 0;
    return hipGetDeviceCount(&devices) == hipSuccess ? devices : 0;
  };
  const int found = run_job(job).front();
  return found > 0 ? found : 0;
}

} // namespace ferry::test
