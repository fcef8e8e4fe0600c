// SPDX-License-Identifier: MIT
#include "thread_job.hpp"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "lib/exec/active.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::test {

void Meeting::bring(std::uint64_t round, int rank, const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Round& it = rounds_[round];
  it.data.resize(bytes * static_cast<std::size_t>(ranks_));
  std::memcpy(it.data.data() + bytes * static_cast<std::size_t>(rank), data, bytes);
  ++it.brought;
}

bool Meeting::take(std::uint64_t round, void* all) {
  const std::lock_guard lock(mutex_);
  Round& it = rounds_[round];
  if (it.brought < ranks_) return false;
  std::memcpy(all, it.data.data(), it.data.size());
  if (++it.taken == ranks_) rounds_.erase(round);
  return true;
}

void Meeting::note_broken_promise() {
  const std::lock_guard lock(mutex_);
  ++broken_promises_;
}

int Meeting::broken_promises() const {
  const std::lock_guard lock(mutex_);
  return broken_promises_;
}

ThreadBootstrap::ThreadBootstrap(std::shared_ptr<Meeting> meeting, int rank, Tamper tamper)
    : meeting_(std::move(meeting)), rank_(rank), tamper_(std::move(tamper)) {}

ThreadBootstrap::~ThreadBootstrap() {
  // A late exchange would still read there: freed memory does not hold what it held.
  if (all_ == nullptr || std::equal(brought_.begin(), brought_.end(), mine_)) return;
  meeting_->note_broken_promise();
}

void ThreadBootstrap::start_allgather(const void* mine, std::size_t bytes, void* all) {
  if (all_ != nullptr) throw std::logic_error("an exchange began before the last one was over");
  all_ = all;
  mine_ = static_cast<const unsigned char*>(mine);
  brought_.assign(mine_, mine_ + bytes);
  meeting_->bring(round_, rank_, mine, bytes);
}

bool ThreadBootstrap::test() {
  if (all_ == nullptr) return true;
  if (!meeting_->take(round_, all_)) return false;
  if (tamper_ && round_ == 0) { // the cards come first
    auto* cards = static_cast<core::RankCard*>(all_);
    for (int rank = 0; rank < size(); ++rank) tamper_(rank, cards[rank]);
  }
  all_ = nullptr;
  ++round_;
  return true;
}

std::unique_ptr<core::Exchange> ThreadBootstrap::prepare(
    const std::vector<core::ExchangePart>& sends, const std::vector<core::ExchangePart>& receives) {
  return std::make_unique<PostExchange>(
      meeting_->post_office(), exchanges_++, rank_, sends, receives);
}

void roomy(int, core::RankCard& card) {
  for (std::uint64_t& word : card.cpus) word = ~std::uint64_t{0};
}

Comm make_comm(
    const std::shared_ptr<Meeting>& meeting, int rank, const std::string& name, Tamper tamper) {
  if (!tamper && std::getenv("TEST_ROOMY") != nullptr) tamper = roomy;
  auto bootstrap = std::make_unique<ThreadBootstrap>(meeting, rank, std::move(tamper));
  auto comm = std::make_shared<core::Communicator>(std::move(bootstrap), MPI_COMM_NULL, name);
  core::register_active(comm);
  return comm;
}

void Faults::expect(bool fine, const std::string& text) {
  if (fine) return;
  const std::lock_guard lock(mutex_);
  if (first_.empty()) first_ = text;
}

std::string Faults::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

void run_ranks(int ranks, Faults& faults, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        faults.expect(false, "rank " + std::to_string(rank) + " threw: " + error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

void dawdle(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      break;
    case 1:
    case 2:
      std::this_thread::yield();
      break;
    default:
      break;
  }
}

core::Status run_blocking(const Comm& comm, const core::CollectiveDesc& desc) {
  core::LaneOp op;
  op.desc = desc;
  comm->post(op);
  return comm->wait(op); // looks under the lock: another rank's thread may have moved it on
}

InFlight::InFlight(Comm comm, const core::CollectiveDesc& desc) : comm_(std::move(comm)) {
  op_.desc = desc;
  comm_->post(op_);
}

InFlight::InFlight(Comm comm, core::PersistentPlan& plan) : comm_(std::move(comm)), plan_(&plan) {
  const core::Status status = comm_->start(plan);
  if (!status.ok()) throw core::Failure(status);
}

bool InFlight::test() {
  const core::Poll poll = plan_ != nullptr ? comm_->look(*plan_) : comm_->look(op_);
  if (poll == core::Poll::pending) comm_->poke();
  return poll == core::Poll::ready;
}

core::Status InFlight::wait() {
  return plan_ != nullptr ? comm_->wait(*plan_) : comm_->wait(op_);
}

Bench::Bench(const std::shared_ptr<Meeting>& meeting, int rank, const core::BlockLayout& layout)
    : bootstrap(meeting, rank), set_up(bootstrap, team, layout) {
  if (!soon([this] { return set_up.progress(); })) throw std::runtime_error("no team");
  block = set_up.take_lane_block();
  for (const core::Member& member : team.members) {
    blocks.push_back(member.heap->base() + member.lane_offset);
  }
}

Bench::~Bench() {
  core::Heap::instance().release(block);
}

std::uint64_t heap_bytes() {
  struct stat facts {};
  if (fstat(core::Heap::instance().id().descriptor, &facts) != 0) return 0;
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

std::uint64_t live_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

} // namespace ferry::test
