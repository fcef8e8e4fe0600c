// SPDX-License-Identifier: MIT
#pragma once

// Who makes a call together: a thread, a wave (AMD: wavefront, NVIDIA: warp) or a workgroup. A call
// that takes a scope is made by all lanes of it, in the same order and with the same arguments, and
// never from divergent code: it has barriers inside. Waves and workgroups are whole.
//
//   rank(), size()   this lane and how many there are
//   is_leader()      the one lane that posts and waits for all
//   sync()           all lanes have come here. What any of them stored before comes before what any
//                    of them releases afterwards, at system scope; what any of them acquired before
//                    is visible to all of them. A barrier alone would order neither.
//   join()           all lanes have come here, and see what any of them stored before. It orders
//                    nothing for others, and costs no write-back of caches
//   max(value)       the largest value of all lanes, for all of them: how one lane's result becomes
//                    the result of the call. It orders nothing.
//
// Beside platform.hpp this is the only file that asks for the compiler, since lanes are its matter.

#include <cstdint>

#include "platform.hpp"

namespace ferry::device {

// A host program that runs lanes as threads lends them this. meet() returns once all lanes came,
// and what each did before it happens before what any does after it.
struct HostLanes {
  std::uint32_t size = 1;
  void (*meet)(void* context) = nullptr;
  void* context = nullptr;
  std::uint64_t* words = nullptr; // one for each lane
};

// A workgroup among those of a kernel. Grids have one dimension.
struct Place {
  std::uint32_t block = 0;
  std::uint32_t blocks = 1;
};

class Thread {
 public:
  FERRY_DEVICE_FN std::uint32_t rank() const { return 0; }
  FERRY_DEVICE_FN std::uint32_t size() const { return 1; }
  FERRY_DEVICE_FN bool is_leader() const { return true; }
  // A thread's own releases follow its own stores.
  FERRY_DEVICE_FN void sync() const {}
  FERRY_DEVICE_FN void join() const {}
  FERRY_DEVICE_FN std::uint64_t max(std::uint64_t value) const { return value; }
};

#if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__)

namespace detail {

#if defined(__HIP_DEVICE_COMPILE__)

FERRY_DEVICE_FN std::uint32_t wave_rank() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

FERRY_DEVICE_FN std::uint32_t wave_size() {
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
  return __builtin_amdgcn_wavefrontsize();
#else
  return __AMDGCN_WAVEFRONT_SIZE; // older compilers
#endif
}

FERRY_DEVICE_FN void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

FERRY_DEVICE_FN std::uint32_t wave_read(std::uint32_t value, std::uint32_t lane) {
  return static_cast<std::uint32_t>(
      __builtin_amdgcn_readlane(static_cast<int>(value), static_cast<int>(lane)));
}

FERRY_DEVICE_FN std::uint32_t workgroup_rank() {
  const std::uint32_t row = __builtin_amdgcn_workitem_id_y() +
                            __builtin_amdgcn_workitem_id_z() * __builtin_amdgcn_workgroup_size_y();
  return __builtin_amdgcn_workitem_id_x() + row * __builtin_amdgcn_workgroup_size_x();
}

FERRY_DEVICE_FN std::uint32_t workgroup_size() {
  return std::uint32_t{__builtin_amdgcn_workgroup_size_x()} * __builtin_amdgcn_workgroup_size_y() *
         __builtin_amdgcn_workgroup_size_z();
}

FERRY_DEVICE_FN void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

FERRY_DEVICE_FN Place place_in_grid() {
  return {
      __builtin_amdgcn_workgroup_id_x(),
      __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()};
}

#define FERRY_SHARED __attribute__((shared))

FERRY_DEVICE_FN void raise(std::uint64_t* word, std::uint64_t value) {
  __hip_atomic_fetch_max(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}

#else

FERRY_DEVICE_FN std::uint32_t wave_rank() {
  std::uint32_t lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

FERRY_DEVICE_FN std::uint32_t wave_size() {
  return 32;
}

FERRY_DEVICE_FN void wave_barrier() {
  __syncwarp();
}

FERRY_DEVICE_FN std::uint32_t wave_read(std::uint32_t value, std::uint32_t lane) {
  return __shfl_sync(~0u, value, static_cast<int>(lane));
}

FERRY_DEVICE_FN std::uint32_t workgroup_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

FERRY_DEVICE_FN std::uint32_t workgroup_size() {
  return blockDim.x * blockDim.y * blockDim.z;
}

FERRY_DEVICE_FN void workgroup_barrier() {
  __syncthreads();
}

FERRY_DEVICE_FN Place place_in_grid() {
  return {blockIdx.x, gridDim.x};
}

#define FERRY_SHARED __shared__

FERRY_DEVICE_FN void raise(std::uint64_t* word, std::uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(word), value);
}

#endif

} // namespace detail

class Wave {
 public:
  FERRY_DEVICE_FN std::uint32_t rank() const { return detail::wave_rank(); }
  FERRY_DEVICE_FN std::uint32_t size() const { return detail::wave_size(); }
  FERRY_DEVICE_FN bool is_leader() const { return rank() == 0; }
  FERRY_DEVICE_FN void sync() const {
    release_fence();
    detail::wave_barrier();
  }
  FERRY_DEVICE_FN void join() const { detail::wave_barrier(); }
  FERRY_DEVICE_FN std::uint64_t max(std::uint64_t value) const {
    std::uint64_t most = 0;
    for (std::uint32_t lane = 0; lane < size(); ++lane) {
      const auto low = detail::wave_read(static_cast<std::uint32_t>(value), lane);
      const auto high = detail::wave_read(static_cast<std::uint32_t>(value >> 32), lane);
      const std::uint64_t other = low | std::uint64_t{high} << 32;
      most = other > most ? other : most;
    }
    return most;
  }
};

class Workgroup {
 public:
  FERRY_DEVICE_FN std::uint32_t rank() const { return detail::workgroup_rank(); }
  FERRY_DEVICE_FN std::uint32_t size() const { return detail::workgroup_size(); }
  FERRY_DEVICE_FN bool is_leader() const { return rank() == 0; }
  FERRY_DEVICE_FN void sync() const {
    release_fence();
    detail::workgroup_barrier();
  }
  FERRY_DEVICE_FN void join() const { detail::workgroup_barrier(); }
  // The last barrier keeps the word until all have read it.
  FERRY_DEVICE_FN std::uint64_t max(std::uint64_t value) const {
    FERRY_SHARED std::uint64_t word;
    if (is_leader()) word = 0;
    detail::workgroup_barrier();
    detail::raise(&word, value);
    detail::workgroup_barrier();
    const std::uint64_t most = word;
    detail::workgroup_barrier();
    return most;
  }
};

#undef FERRY_SHARED

#else

namespace detail {

// A lane that is a thread of the host; without HostLanes, the only one of its group.
class HostLane {
 public:
  HostLane() = default;
  HostLane(const HostLanes& lanes, std::uint32_t rank) : lanes_(&lanes), rank_(rank) {}
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return lanes_ != nullptr ? lanes_->size : 1; }
  bool is_leader() const { return rank_ == 0; }
  void sync() const {
    if (lanes_ != nullptr) lanes_->meet(lanes_->context);
  }
  void join() const { sync(); }
  // The second meeting keeps the words until all have read them.
  std::uint64_t max(std::uint64_t value) const {
    if (lanes_ == nullptr) return value;
    lanes_->words[rank_] = value;
    sync();
    for (std::uint32_t lane = 0; lane < lanes_->size; ++lane) {
      if (lanes_->words[lane] > value) value = lanes_->words[lane];
    }
    sync();
    return value;
  }

 private:
  const HostLanes* lanes_ = nullptr;
  std::uint32_t rank_ = 0;
};

} // namespace detail

class Wave : public detail::HostLane {
  using HostLane::HostLane;
};

class Workgroup : public detail::HostLane {
  using HostLane::HostLane;
};

#endif

} // namespace ferry::device
