// SPDX-License-Identifier: MIT
#include "tests/nvidia/exchange.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/base/clock.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "tests/support/pattern.hpp"

namespace ferry::test {

namespace {

constexpr std::uint64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5;
constexpr double kWaitSeconds = 30;

using core::Operation;
using nvidia::check_driver;
using nvidia::check_runtime;

// An allocation of the virtual memory calls, as an allocator of a framework makes it.
char* allocate_shareable(std::uint64_t bytes) {
  int device = 0;
  check_runtime(hipGetDevice(&device), "cudaGetDevice");
  const auto create = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result{};
    cudaGetDriverEntryPointByVersion("cuMemCreate", &entry, 12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuMemCreate)>(entry);
  }();
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  CUmemGenericAllocationHandle handle = 0;
  check_driver(create(&handle, bytes, &kind, 0), "cuMemCreate");
  const nvidia::Driver& d = nvidia::driver();
  CUdeviceptr at = 0;
  check_driver(d.reserve(&at, bytes, 0, 0, 0), "cuMemAddressReserve");
  check_driver(d.map(at, bytes, 0, handle, 0), "cuMemMap");
  CUmemAccessDesc access{};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_driver(d.set_access(at, bytes, &access, 1), "cuMemSetAccess");
  check_driver(d.release(handle), "cuMemRelease");
  return reinterpret_cast<char*>(at);
}

} // namespace

Memory::Memory(Place place, std::uint64_t bytes, std::uint64_t shift)
    : place_(place), bytes_(bytes), shift_(shift) {
  constexpr std::uint64_t kUnit = std::uint64_t{2} << 20; // of shareable memory
  total_ = bytes + shift + 2 * kGuard;
  // Peers map a larger allocation in small pages unless it is a multiple of large ones, and copies
  // are slower then; short ones stay odd.
  const bool large = total_ > 4 * kUnit;
  if (place == Place::shareable || (place == Place::device && large))
    total_ = (total_ + kUnit - 1) / kUnit * kUnit;
  void* base = nullptr;
  if (place == Place::host) base = std::malloc(total_);
  if (place == Place::device) check_runtime(hipMalloc(&base, total_), "cudaMalloc");
  if (place == Place::shareable) base = allocate_shareable(total_);
  base_ = static_cast<char*>(base);
  if (place == Place::host) {
    std::memset(base_, kGuardByte, total_);
  } else {
    check_runtime(hipMemset(base_, kGuardByte, total_), "cudaMemset");
  }
}

Memory::~Memory() {
  if (place_ == Place::host) std::free(base_);
  if (place_ == Place::device) hipFree(base_);
  if (place_ != Place::shareable) return;
  nvidia::driver().unmap(reinterpret_cast<CUdeviceptr>(base_), total_);
  nvidia::driver().unreserve(reinterpret_cast<CUdeviceptr>(base_), total_);
}

char* Memory::get() const {
  return base_ + kGuard + shift_;
}

void Memory::write(const std::vector<unsigned char>& data) const {
  if (data.empty()) return;
  check_runtime(hipMemcpy(get(), data.data(), data.size(), hipMemcpyDefault), "cudaMemcpy");
}

std::vector<unsigned char> Memory::read() const {
  std::vector<unsigned char> data(bytes_);
  if (bytes_ == 0) return data;
  check_runtime(hipMemcpy(data.data(), get(), bytes_, hipMemcpyDefault), "cudaMemcpy");
  return data;
}

bool Memory::guards_hold() const {
  std::vector<unsigned char> guard(kGuard);
  for (char* at : {get() - kGuard, get() + bytes_}) {
    check_runtime(hipMemcpy(guard.data(), at, kGuard, hipMemcpyDefault), "cudaMemcpy");
    const auto good = [](unsigned char byte) { return byte == kGuardByte; };
    if (!std::all_of(guard.begin(), guard.end(), good)) return false;
  }
  return true;
}

Exchange::Exchange(const Call& call, ProcessTeam& team, core::DeviceBackend& backend)
    : call_(call),
      rank_(team.rank()),
      ranks_(team.ranks()),
      send_(call.place, send_bytes(), call.shift),
      recv_(call.place, recv_bytes(), call.shift) {
  plan_ = backend.make_plan(desc(), team);
}

std::uint64_t Exchange::send_bytes() const {
  const auto all = static_cast<std::uint64_t>(ranks_) * call_.bytes;
  return call_.operation == Operation::alltoall ? all : call_.bytes;
}

std::uint64_t Exchange::recv_bytes() const {
  const auto all = static_cast<std::uint64_t>(ranks_) * call_.bytes;
  return call_.operation == Operation::broadcast ? call_.bytes : all;
}

core::CollectiveDesc Exchange::desc() const {
  core::CollectiveDesc d;
  d.operation = call_.operation;
  d.form = core::Form::persistent;
  d.in_place = call_.in_place;
  d.own_block = !call_.in_place && call_.operation != Operation::broadcast;
  d.root = call_.root;
  d.send = call_.in_place ? recv_.get() : send_.get();
  d.recv = recv_.get();
  d.send_layout = d.recv_layout = core::contiguous_layout(call_.bytes, 1);
  return d;
}

void Exchange::fill(std::uint64_t iteration) const {
  std::vector<unsigned char> out(send_bytes());
  std::vector<unsigned char> in(recv_bytes());
  poison(in.data(), in.size(), iteration);
  const bool all = call_.operation == Operation::alltoall;
  for (int peer = 0; peer < (all ? ranks_ : 1); ++peer) {
    const Stream stream{iteration, rank_, all ? peer : kEveryone};
    const std::uint64_t at = static_cast<std::uint64_t>(peer) * call_.bytes;
    test::fill(out.data() + at, call_.bytes, stream);
  }
  if (call_.in_place && all) in = out;
  if (call_.in_place && call_.operation == Operation::allgather) {
    const auto at = static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(rank_) * call_.bytes);
    std::copy(out.begin(), out.end(), in.begin() + at);
  }
  send_.write(out);
  recv_.write(in);
}

std::string Exchange::check(std::uint64_t iteration) const {
  const bool root = call_.operation == Operation::broadcast && rank_ == call_.root;
  const std::vector<unsigned char> got = root ? send_.read() : recv_.read();
  const bool spread = call_.operation == Operation::broadcast;
  for (int sender = 0; sender < (spread ? 1 : ranks_); ++sender) {
    const bool all = call_.operation == Operation::alltoall;
    const Stream stream{iteration, spread ? call_.root : sender, all ? rank_ : kEveryone};
    const std::uint64_t at = static_cast<std::uint64_t>(sender) * call_.bytes;
    const auto wrong = first_difference(got.data() + at, call_.bytes, stream);
    if (!wrong) continue;
    return fmt::format(
        "rank {}, {} of {} bytes, iteration {}: byte {} of the block of rank {} is wrong ({})",
        rank_, core::name_of(call_.operation), call_.bytes, iteration, *wrong, sender,
        plan_->explain());
  }
  if (!recv_.guards_hold() || !send_.guards_hold()) return "bytes outside the buffers changed";
  return "";
}

std::string Exchange::wait() const {
  const double until = core::now_seconds() + kWaitSeconds;
  for (; plan_->progress() == core::Poll::pending;) {
    if (core::now_seconds() > until) return "no end: " + plan_->missing() + ": " + plan_->explain();
    sched_yield();
  }
  return plan_->status().ok() ? "" : plan_->status().cause;
}

std::string Exchange::run(std::uint64_t iteration) const {
  fill(iteration);
  plan_->start();
  const std::string wrong = wait();
  return wrong.empty() ? check(iteration) : wrong;
}

} // namespace ferry::test
