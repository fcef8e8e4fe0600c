// SPDX-License-Identifier: MIT
#include "tests/amd/rig.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/amd/patience.hpp"
#include "tests/amd/fake/modules.hpp"
#include "tests/support/world.hpp"

namespace ferry::test {
namespace {

using core::Operation;

constexpr unsigned char kCanary = 0xa5;
constexpr unsigned char kPoison = 0x5a;

} // namespace

MpiTeam::MpiTeam(MPI_Comm comm) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &ranks_);
}

MpiTeam::~MpiTeam() {
  free_windows();
  MPI_Comm_free(&comm_);
}

void MpiTeam::free_windows() {
  for (MPI_Win& window : windows_) MPI_Win_free(&window);
  windows_.clear();
}

void MpiTeam::allgather(const void* mine, std::size_t bytes, void* all) {
  const int count = static_cast<int>(bytes);
  MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_);
}

void MpiTeam::share(std::size_t bytes) {
  void* mine = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm_, &mine, &window);
  windows_.push_back(window);
  std::memset(mine, 0, bytes);
  MPI_Barrier(comm_);
  blocks_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    MPI_Aint size = 0;
    int unit = 0;
    void* base = nullptr;
    MPI_Win_shared_query(window, rank, &size, &unit, &base);
    blocks_.push_back(static_cast<std::byte*>(base));
  }
}

SharedFolder::SharedFolder() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    folder_ = std::make_unique<TemporaryFolder>();
    path_ = folder_->path();
  }
  std::size_t length = path_.size();
  MPI_Bcast(&length, sizeof length, MPI_BYTE, 0, MPI_COMM_WORLD);
  path_.resize(length);
  MPI_Bcast(path_.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
}

// Rank 0 removes it when all have come here.
SharedFolder::~SharedFolder() {
  MPI_Barrier(MPI_COMM_WORLD);
}

namespace {

// Printed, so that a run can be made again.
std::uint64_t seed_of_run(int rank) {
  static const std::uint64_t seed = [rank] {
    const std::uint64_t found = std::stoull(environment("TEST_SEED", "1"));
    if (rank == 0) std::printf("seed of the modelled engines: TEST_SEED=%d\n", int(found));
    return found;
  }();
  return seed;
}

} // namespace

Rig::Rig(const RigSettings& settings) {
  const GpuModel& model = gpu_model(settings.model);
  node_ = kCpuNodes + (settings.one_gpu ? 0 : team_.rank() % model.gpus);
  if (team_.rank() == 0) write_sysfs(model, folder_.path() + "/sys");
  MPI_Barrier(MPI_COMM_WORLD);
  FakeSettings kernel;
  kernel.model = settings.model;
  kernel.folder = folder_.path();
  kernel.free_engines = settings.seed != 0 || !(small_grid() || settings.in_order);
  kernel.seed = settings.seed != 0 ? settings.seed : seed_of_run(team_.rank());
  kernel.seed = kernel.seed * 64 + static_cast<std::uint64_t>(team_.rank());
  kernel_ = std::make_unique<FakeKernel>(kernel);
  rocr_ = std::make_unique<FakeRocr>(*kernel_, settings.rocr);
  kernel_->set_faults(settings.faults);
  amd::HipApi hip = FakeRocr::hip();
  if (settings.kernels) hip.modules = fake_hip_modules();
  backend_ = std::make_unique<amd::AmdBackend>(*kernel_, rocr_->hsa(), hip, settings.options);
}

RigBuffer::RigBuffer(Rig& rig, std::size_t bytes, Where where, int node)
    : rig_(rig), bytes_(bytes), where_(where) {
  const std::size_t whole = bytes + 2 * kMargin;
  const int home = node != 0 ? node : rig_.node();
  if (where_ == Where::device) {
    base_ = rig_.rocr().hip_malloc(home, whole);
  } else if (where_ == Where::mapped) {
    base_ = rig_.rocr().hip_map(home, whole);
  } else {
    host_.resize(whole);
    base_ = reinterpret_cast<std::byte*>(host_.data());
  }
  const std::vector<unsigned char> canaries(whole, kCanary);
  rig_.backend().copy(base_, canaries.data(), whole);
}

RigBuffer::~RigBuffer() {
  if (where_ != Where::host) rig_.rocr().hip_free(base_);
}

void RigBuffer::write(const std::vector<unsigned char>& bytes) {
  rig_.backend().copy(data(), bytes.data(), bytes.size());
}

std::vector<unsigned char> RigBuffer::read() {
  std::vector<unsigned char> all(bytes_ + 2 * kMargin);
  rig_.backend().copy(all.data(), base_, all.size());
  for (std::size_t i = 0; i < kMargin; ++i) {
    if (all[i] != kCanary || all[kMargin + bytes_ + i] != kCanary) {
      throw core::Failure(core::ErrorKind::other, "a canary next to a buffer was overwritten");
    }
  }
  return {all.begin() + kMargin, all.begin() + kMargin + static_cast<std::ptrdiff_t>(bytes_)};
}

unsigned char pattern_byte(int iteration, int sender, int receiver, std::size_t at) {
  std::uint64_t value = static_cast<std::uint64_t>(iteration) * 0x9e3779b97f4a7c15u +
                        static_cast<std::uint64_t>(sender) * 0xc2b2ae3d27d4eb4fu +
                        static_cast<std::uint64_t>(receiver) * 0x165667b19e3779f9u + at;
  value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9u;
  return static_cast<unsigned char>(value >> 40);
}

core::Status finish(core::DevicePlan& plan) {
  constexpr double kMinute = 60;
  const core::Status status =
      amd::wait_patiently([&] { return plan.missing(); }, kMinute, [&] { return plan.progress(); });
  return status.ok() ? plan.status() : status;
}

TrialRun::TrialRun(Rig& rig, core::DeviceTeam& team, const Trial& trial)
    : rig_(rig), trial_(trial) {
  const auto ranks = static_cast<std::size_t>(rig.ranks());
  const bool bcast = trial.operation == Operation::broadcast;
  const std::size_t all = trial.block * (bcast ? 1 : ranks);
  const bool each = trial.operation == Operation::alltoall;
  send_ = std::make_unique<RigBuffer>(rig, each ? all : trial.block, trial.where);
  recv_ = std::make_unique<RigBuffer>(rig, all, trial.where);
  core::CollectiveDesc desc;
  desc.operation = trial.operation;
  desc.form = core::Form::persistent;
  desc.in_place = trial.in_place;
  desc.root = trial.root;
  desc.send = trial.in_place ? recv_->data() : send_->data();
  desc.recv = recv_->data();
  desc.send_layout = desc.recv_layout = core::contiguous_layout(trial.block, 1);
  plan_ = rig.backend().make_plan(desc, team);
}

void TrialRun::fill(int iteration) {
  const int ranks = rig_.ranks();
  const int me = rig_.rank();
  const bool each = trial_.operation == Operation::alltoall;
  std::vector<unsigned char> send;
  for (int to = 0; to < (each ? ranks : 1); ++to) {
    for (std::size_t i = 0; i < trial_.block; ++i) {
      send.push_back(pattern_byte(iteration, me, to, i));
    }
  }
  const bool bcast = trial_.operation == Operation::broadcast;
  std::vector<unsigned char> recv(trial_.block * static_cast<std::size_t>(bcast ? 1 : ranks));
  std::fill(recv.begin(), recv.end(), static_cast<unsigned char>(kPoison + iteration));
  if (trial_.in_place && each) recv = send;
  if (trial_.in_place && trial_.operation == Operation::allgather) {
    const auto at = static_cast<std::size_t>(me) * trial_.block;
    std::copy(send.begin(), send.end(), recv.begin() + static_cast<std::ptrdiff_t>(at));
  }
  send_->write(send);
  recv_->write(recv);
}

std::size_t TrialRun::wrong(int iteration) {
  const std::vector<unsigned char> seen = recv_->read();
  (void)send_->read();
  const bool bcast = trial_.operation == Operation::broadcast;
  if (bcast && rig_.rank() == trial_.root) return 0;
  std::size_t wrong = 0;
  for (int from = 0; from < (bcast ? 1 : rig_.ranks()); ++from) {
    const int sender = bcast ? trial_.root : from;
    const int receiver = trial_.operation == Operation::alltoall ? rig_.rank() : 0;
    for (std::size_t i = 0; i < trial_.block; ++i) {
      const std::size_t at = static_cast<std::size_t>(from) * trial_.block + i;
      wrong += seen[at] != pattern_byte(iteration, sender, receiver, i) ? 1 : 0;
    }
  }
  return wrong;
}

std::size_t run_trial(Rig& rig, const Trial& trial, std::string* explained) {
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, trial);
  if (explained != nullptr) *explained = run.plan().explain();
  std::size_t wrong = 0;
  for (int iteration = 1; iteration <= trial.starts; ++iteration) {
    run.fill(iteration);
    run.plan().start();
    const core::Status status = finish(run.plan());
    if (!status.ok()) {
      core::Status told = status;
      for (const std::string& fault : rig.kernel().faults()) told.cause += "; " + fault;
      throw core::Failure(told);
    }
    wrong += run.wrong(iteration);
  }
  return wrong;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void run_every_collective(
    Rig& rig, const std::vector<std::size_t>& blocks,
    const std::function<const char*(const Trial&)>& path_of) {
  for (const std::size_t block : blocks) {
    for (const Trial& trial :
         {Trial{Operation::alltoall, block}, Trial{Operation::alltoall, block, true},
          Trial{Operation::allgather, block}, Trial{Operation::allgather, block, true},
          Trial{Operation::broadcast, block},
          Trial{Operation::broadcast, block, false, rig.ranks() - 1}}) {
      CAPTURE(block);
      const std::string operation = core::name_of(trial.operation);
      CAPTURE(operation);
      CAPTURE(trial.in_place);
      std::string explained;
      CHECK(run_trial(rig, trial, &explained) == 0);
      CHECK_MESSAGE(contains(explained, path_of(trial)), explained);
    }
  }
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

} // namespace ferry::test
