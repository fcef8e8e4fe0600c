// SPDX-License-Identifier: MIT
#pragma once

// The part of the kernel's KFD interface that Ferry uses. Own definitions: the headers of a
// distribution may be older than the kernel that runs, and the kernel goes by number and size.

#include <cstddef>
#include <cstdint>

namespace ferry::amd::kfd {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Version {
  u32 major = 0;
  u32 minor = 0;
};

struct CreateQueue {
  u64 ring_base = 0;
  u64 wptr_address = 0;
  u64 rptr_address = 0;
  u64 doorbell_offset = 0; // out
  u32 ring_bytes = 0;
  u32 gpu_id = 0;
  u32 queue_type = 0;
  u32 percentage = 0;
  u32 priority = 0;
  u32 queue_id = 0; // out
  u64 eop_address = 0;
  u64 eop_bytes = 0;
  u64 save_address = 0;
  u32 save_bytes = 0;
  u32 stack_bytes = 0;
  u32 engine = 0; // from 1.17 on; older kernels cut it off
  u32 pad = 0;
};

struct DestroyQueue {
  u32 queue_id = 0;
  u32 pad = 0;
};

struct Aperture {
  u64 lds_base = 0;
  u64 lds_limit = 0;
  u64 scratch_base = 0;
  u64 scratch_limit = 0;
  u64 gpuvm_base = 0;
  u64 gpuvm_limit = 0;
  u32 gpu_id = 0;
  u32 pad = 0;
};

struct Apertures {
  u64 array = 0; // of Aperture
  u32 count = 0; // in: room, out: GPUs
  u32 pad = 0;
};

struct AcquireVm {
  u32 drm_descriptor = 0;
  u32 gpu_id = 0;
};

struct AllocateMemory {
  u64 address = 0;
  u64 bytes = 0;
  u64 handle = 0; // out
  u64 map_offset = 0; // out
  u32 gpu_id = 0;
  u32 flags = 0;
};

struct FreeMemory {
  u64 handle = 0;
};

struct MapMemory {
  u64 handle = 0;
  u64 device_ids = 0; // array of gpu_id
  u32 devices = 0;
  u32 done = 0; // out
};

static_assert(sizeof(Version) == 8 && sizeof(CreateQueue) == 96 && sizeof(DestroyQueue) == 8);
static_assert(offsetof(CreateQueue, engine) == 88 && offsetof(CreateQueue, doorbell_offset) == 24);
static_assert(sizeof(Aperture) == 56 && sizeof(Apertures) == 16 && sizeof(AcquireVm) == 8);
static_assert(sizeof(AllocateMemory) == 40 && sizeof(FreeMemory) == 8 && sizeof(MapMemory) == 24);

inline constexpr unsigned long kOut = 2; // the kernel writes the argument
inline constexpr unsigned long kIn = 1;

constexpr unsigned long request(unsigned long direction, unsigned long number, std::size_t bytes) {
  return direction << 30 | static_cast<unsigned long>(bytes) << 16 | 0x4bul << 8 | number;
}
constexpr unsigned long number_of(unsigned long request) {
  return request & 0xff;
}
constexpr std::size_t bytes_of(unsigned long request) {
  return request >> 16 & 0x3fff;
}

inline constexpr unsigned long kGetVersion = request(kOut, 0x01, sizeof(Version));
inline constexpr unsigned long kCreateQueue = request(kIn | kOut, 0x02, sizeof(CreateQueue));
inline constexpr unsigned long kDestroyQueue = request(kIn | kOut, 0x03, sizeof(DestroyQueue));
inline constexpr unsigned long kGetApertures = request(kIn | kOut, 0x14, sizeof(Apertures));
inline constexpr unsigned long kAcquireVm = request(kIn, 0x15, sizeof(AcquireVm));
inline constexpr unsigned long kAllocateMemory = request(kIn | kOut, 0x16, sizeof(AllocateMemory));
inline constexpr unsigned long kFreeMemory = request(kIn, 0x17, sizeof(FreeMemory));
inline constexpr unsigned long kMapMemory = request(kIn | kOut, 0x18, sizeof(MapMemory));
inline constexpr unsigned long kUnmapMemory = request(kIn | kOut, 0x19, sizeof(MapMemory));

static_assert(kGetVersion == 0x80084b01 && kCreateQueue == 0xc0604b02);
static_assert(kDestroyQueue == 0xc0084b03 && kGetApertures == 0xc0104b14);
static_assert(kAcquireVm == 0x40084b15 && kAllocateMemory == 0xc0284b16);
static_assert(kMapMemory == 0xc0184b18);

inline constexpr u32 kQueueSdma = 0x1;
inline constexpr u32 kQueueSdmaXgmi = 0x3;
inline constexpr u32 kQueueSdmaByEngine = 0x4; // from 1.17 on

inline constexpr u32 kMemoryVram = 1u << 0;
inline constexpr u32 kMemoryGtt = 1u << 1;
inline constexpr u32 kMemoryDoorbell = 1u << 3;
inline constexpr u32 kMemoryUncached = 1u << 25;
inline constexpr u32 kMemoryCoherent = 1u << 26;
inline constexpr u32 kMemoryNoSubstitute = 1u << 28;
inline constexpr u32 kMemoryPublic = 1u << 29;
inline constexpr u32 kMemoryExecutable = 1u << 30;
inline constexpr u32 kMemoryWritable = 1u << 31;

inline constexpr std::size_t kDoorbellPage = 8192; // 1024 doorbells of 8 bytes
inline constexpr u32 kWholeQueue = 100; // percentage
inline constexpr u32 kHighestPriority = 15;

} // namespace ferry::amd::kfd
