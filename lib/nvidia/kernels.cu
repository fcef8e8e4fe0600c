// SPDX-License-Identifier: MIT
#include "device/platform.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/kernels.hpp"

namespace ferry::nvidia {

namespace {

constexpr int kThreads = 512;
constexpr std::uint32_t kLooksPerCheck = 8192; // looks at a word between two at the clock

__device__ const PeerView& view(const ExchangeArgs& a, int rank) {
  return a.table != nullptr ? a.table[rank] : a.peers[rank];
}

// Every kernel begins with it: all that was queued earlier is complete, and visible.
__device__ void follow() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next start in the stream may take its place on the GPU, where it waits in follow().
__device__ void let_next_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Bounds a wait: by the host's word, and by time where there is a limit.
class Bound {
 public:
  __device__ explicit Bound(const Patience& patience) : patience_(patience) {}
  // After each unsuccessful look. True: give up.
  __device__ bool over() {
    if (++looks_ % kLooksPerCheck != 0) return false;
    const std::uint64_t now = nanoseconds();
    if (since_ == 0) since_ = now;
    const bool late = patience_.limit_ns != 0 && now - since_ > patience_.limit_ns;
    if (!late && device::load_relaxed(patience_.abort) == 0) return false;
    device::store_relaxed(patience_.failed, std::uint32_t{1});
    return true;
  }

 private:
  const Patience& patience_;
  std::uint64_t since_ = 0;
  std::uint32_t looks_ = 0;
};

// Pairs with the release of whoever raises the word.
__device__ bool await(const std::uint64_t* word, std::uint64_t value, const Patience& patience) {
  Bound bound(patience);
  bool there = device::load_acquire(word) >= value;
  for (; !there && !bound.over();) there = device::load_acquire(word) >= value;
  return there;
}

template <class Unit>
__device__ void copy_units(char* to, const char* from, std::uint64_t bytes) {
  constexpr int kUnroll = 8;
  Unit* const out = reinterpret_cast<Unit*>(to);
  const Unit* const in = reinterpret_cast<const Unit*>(from);
  const std::uint64_t units = bytes / sizeof(Unit);
  std::uint64_t at = threadIdx.x;
  for (; at + (kUnroll - 1) * kThreads < units; at += kUnroll * kThreads) {
    Unit kept[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) kept[i] = in[at + i * kThreads];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) out[at + i * kThreads] = kept[i];
  }
  for (; at < units; at += kThreads) out[at] = in[at];
}

// All threads of the block; in the widest units that both sides allow.
__device__ void copy(char* to, const char* from, std::uint64_t bytes) {
  const auto differ = reinterpret_cast<std::uint64_t>(to) ^ reinterpret_cast<std::uint64_t>(from);
  if (differ % 4 != 0) return copy_units<char>(to, from, bytes);
  const std::uint64_t unit = differ % 16 == 0 ? 16 : 4;
  std::uint64_t head = (unit - reinterpret_cast<std::uint64_t>(to) % unit) % unit;
  if (head > bytes) head = bytes;
  copy_units<char>(to, from, head);
  const std::uint64_t body = (bytes - head) / unit * unit;
  if (unit == 16) copy_units<uint4>(to + head, from + head, body);
  if (unit == 4) copy_units<std::uint32_t>(to + head, from + head, body);
  copy_units<char>(to + head + body, from + head + body, bytes - head - body);
}

struct Slice {
  std::uint64_t at;
  std::uint64_t bytes;
};

__device__ Slice slice_of(std::uint64_t bytes, int block, int blocks) {
  constexpr std::uint64_t kGrain = 512;
  const std::uint64_t each = (bytes / blocks + kGrain) / kGrain * kGrain;
  const std::uint64_t at = each * block < bytes ? each * block : bytes;
  return {at, bytes - at < each ? bytes - at : each};
}

__device__ std::uint64_t load_data(const char* from, std::uint64_t bytes) {
  if (bytes == kWordData && reinterpret_cast<std::uint64_t>(from) % kWordData == 0) {
    return *reinterpret_cast<const std::uint64_t*>(from);
  }
  std::uint64_t data = 0;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    data |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  }
  return data;
}

__device__ void store_data(char* to, std::uint64_t data, std::uint64_t bytes) {
  if (bytes == kWordData && reinterpret_cast<std::uint64_t>(to) % kWordData == 0) {
    *reinterpret_cast<std::uint64_t*>(to) = data;
    return;
  }
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(data >> (8 * i));
}

// Of the word of a block of `bytes` that begins at `at`.
__device__ std::uint64_t left_of(std::uint64_t bytes, std::uint64_t at) {
  return bytes - at < kWordData ? bytes - at : kWordData;
}

// Two words: each half carries its own flag, so that halves may arrive in any order.
struct Words {
  static constexpr std::uint64_t kData = kWordData;
  static constexpr std::uint64_t kUnit = kWordUnit;

  static __device__ void send(
      const ExchangeArgs& a, const PeerView& peer, char* to, std::uint64_t epoch) {
    const auto flag = static_cast<std::uint32_t>(epoch);
    const std::uint64_t units = (peer.source_bytes + kData - 1) / kData;
    const std::uint64_t stride = std::uint64_t{kThreads} * gridDim.x;
    for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < units; i += stride) {
      const std::uint64_t data =
          load_data(peer.source + i * kData, left_of(peer.source_bytes, i * kData));
      asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to + i * kUnit),
                   "r"(static_cast<std::uint32_t>(data)), "r"(flag),
                   "r"(static_cast<std::uint32_t>(data >> 32))
                   : "memory");
    }
  }

  static __device__ bool look(const char* unit, std::uint32_t flag, std::uint64_t* data) {
    std::uint32_t low, first, high, second;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(low), "=r"(first), "=r"(high), "=r"(second)
                 : "l"(unit)
                 : "memory");
    *data = low | std::uint64_t{high} << 32;
    return first == flag && second == flag;
  }

  static __device__ bool take(
      const ExchangeArgs& a, const PeerView& peer, const char* from, std::uint64_t epoch) {
    const auto flag = static_cast<std::uint32_t>(epoch);
    const std::uint64_t units = (peer.result_bytes + kData - 1) / kData;
    const std::uint64_t stride = std::uint64_t{kThreads} * gridDim.x;
    Bound bound(a.patience);
    for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < units; i += stride) {
      std::uint64_t data = 0;
      bool there = look(from + i * kUnit, flag, &data);
      for (; !there && !bound.over();) there = look(from + i * kUnit, flag, &data);
      if (!there) return false;
      store_data(peer.result + i * kData, data, left_of(peer.result_bytes, i * kData));
    }
    return true;
  }
};

// Four lines of 128 bytes, by one warp in one instruction: eight lanes store a line, and the last
// eight bytes of it are the epoch. NVLink and the memory behind it keep such a store together.
struct Lines {
  static constexpr std::uint64_t kData = kLineData;
  static constexpr std::uint64_t kUnit = kLineUnit;
  static constexpr int kAtOnce = 4; // units in flight for a warp
  static constexpr unsigned kAll = ~0u;

  std::uint64_t low[kAtOnce];
  std::uint64_t high[kAtOnce];

  static __device__ bool flagged() { return threadIdx.x % 8 == 7; }
  // Of this lane's data in its unit: lane i of a line has bytes 16 i, the last one only eight.
  static __device__ std::uint64_t lane_offset() {
    const std::uint64_t lane = threadIdx.x % 32;
    return lane / 8 * 120 + lane % 8 * 16;
  }
  static __device__ std::uint64_t warp() { return (blockIdx.x * kThreads + threadIdx.x) / 32; }
  static __device__ std::uint64_t warps() { return std::uint64_t{gridDim.x} * kThreads / 32; }

  static __device__ void send(
      const ExchangeArgs& a, const PeerView& peer, char* to, std::uint64_t epoch) {
    const std::uint64_t units = (peer.source_bytes + kData - 1) / kData;
    Lines kept;
    for (std::uint64_t first = warp(); first < units; first += warps() * kAtOnce) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const std::uint64_t at = (first + k * warps()) * kData + lane_offset();
        kept.low[k] = at < peer.source_bytes
                          ? load_data(peer.source + at, left_of(peer.source_bytes, at))
                          : 0;
        const bool more = !flagged() && at + 8 < peer.source_bytes;
        kept.high[k] =
            more ? load_data(peer.source + at + 8, left_of(peer.source_bytes, at + 8)) : epoch;
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (first + k * warps() >= units) break;
        char* const unit = to + (first + k * warps()) * kUnit + threadIdx.x % 32 * 16;
        asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(unit), "l"(kept.low[k]),
                     "l"(kept.high[k])
                     : "memory");
      }
    }
  }

  // Whether the units are there, alike for all lanes.
  __device__ bool look(
      const char* from, std::uint64_t first, std::uint64_t units, std::uint64_t epoch) {
    bool there = true;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k * warps() >= units) break;
      const char* const unit = from + (first + k * warps()) * kUnit + threadIdx.x % 32 * 16;
      asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(low[k]), "=l"(high[k])
                   : "l"(unit)
                   : "memory");
      there = there && (!flagged() || high[k] == epoch);
    }
    return __all_sync(kAll, there);
  }

  static __device__ bool take(
      const ExchangeArgs& a, const PeerView& peer, const char* from, std::uint64_t epoch) {
    const std::uint64_t units = (peer.result_bytes + kData - 1) / kData;
    Bound bound(a.patience);
    Lines got;
    for (std::uint64_t first = warp(); first < units; first += warps() * kAtOnce) {
      bool there = got.look(from, first, units, epoch);
      for (; !there && !__any_sync(kAll, bound.over());)
        there = got.look(from, first, units, epoch);
      if (!there) return false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const std::uint64_t at = (first + k * warps()) * kData + lane_offset();
        if (at < peer.result_bytes)
          store_data(peer.result + at, got.low[k], left_of(peer.result_bytes, at));
        if (flagged() || at + 8 >= peer.result_bytes) continue;
        store_data(peer.result + at + 8, got.high[k], left_of(peer.result_bytes, at + 8));
      }
    }
    return true;
  }
};

// A slot was filled depth epochs ago, and this rank began the epoch after that only when its peers
// had sent theirs, thus had read the slot; who only sends waits for the word instead.
template <class Unit>
__global__ void __launch_bounds__(kThreads, 2)
    slots_kernel(const __grid_constant__ ExchangeArgs a) {
  follow();
  const std::uint64_t epoch = a.epochs[blockIdx.x] + 1;
  const std::uint64_t slot = epoch % a.depth * a.slot_bytes;
  bool good = true;
  for (int i = 1; i < a.ranks; ++i) {
    const PeerView& peer = view(a, (a.rank + i) % a.ranks);
    if (peer.source == nullptr) continue;
    if (a.acknowledged && epoch > a.depth) {
      const std::uint64_t* const read = &peer.seen->ready[blockIdx.x];
      good = __syncthreads_and(threadIdx.x != 0 || await(read, epoch - a.depth, a.patience));
    }
    if (good) Unit::send(a, peer, peer.outbox + slot, epoch);
  }
  if (a.own_source != nullptr) {
    const Slice own = slice_of(a.own_bytes, blockIdx.x, gridDim.x);
    copy(a.own_target + own.at, a.own_source + own.at, own.bytes);
  }
  let_next_come();
  __syncthreads(); // in place: all of this block's data was read before the first result lands
  for (int i = 1; i < a.ranks && good; ++i) {
    const PeerView& peer = view(a, (a.rank + a.ranks - i) % a.ranks);
    if (peer.result != nullptr) good = Unit::take(a, peer, peer.inbox + slot, epoch);
  }
  __syncthreads();
  if (a.acknowledged && static_cast<int>(threadIdx.x) < a.ranks) {
    const PeerView& peer = view(a, threadIdx.x);
    if (static_cast<int>(threadIdx.x) != a.rank && peer.result != nullptr) {
      device::store_release(&peer.written->ready[blockIdx.x], epoch);
    }
  }
  if (threadIdx.x == 0) a.epochs[blockIdx.x] = epoch;
}

__device__ void push_to_peers(const ExchangeArgs& a, int block, std::uint64_t epoch) {
  for (int i = 1; i < a.ranks; ++i) {
    const PeerView& peer = view(a, (a.rank + i) % a.ranks);
    if (peer.source == nullptr) continue;
    const bool waits = threadIdx.x == 0;
    if (!__syncthreads_and(!waits || await(&peer.seen->ready[block], epoch, a.patience))) return;
    const Slice slice = slice_of(peer.source_bytes, block, a.push_blocks);
    copy(peer.target + slice.at, peer.source + slice.at, slice.bytes);
    __syncthreads(); // all parts before the word; pairs with the acquire in await()
    if (waits) device::store_release(&peer.written->arrived[block], epoch);
  }
}

// Block b of every rank deals with block b of the others, so that no barrier is needed between
// blocks. The blocks behind those only copy what stays here.
__global__ void __launch_bounds__(kThreads, 2) push_kernel(const __grid_constant__ ExchangeArgs a) {
  follow();
  const int block = blockIdx.x;
  if (block >= a.push_blocks) {
    const Slice own = slice_of(a.own_bytes, block - a.push_blocks, a.own_blocks);
    return copy(a.own_target + own.at, a.own_source + own.at, own.bytes);
  }
  const std::uint64_t epoch = a.started != nullptr ? *a.started : a.epochs[block] + 1;
  const int rank = threadIdx.x;
  const bool other = rank < a.ranks && rank != a.rank;
  if (other && view(a, rank).result != nullptr) {
    device::store_release(&view(a, rank).written->ready[block], epoch);
  }
  if (a.own_blocks == 0 && a.own_source != nullptr) {
    const Slice own = slice_of(a.own_bytes, block, a.push_blocks);
    copy(a.own_target + own.at, a.own_source + own.at, own.bytes);
  }
  push_to_peers(a, block, epoch);
  let_next_come();
  if (other && view(a, rank).result != nullptr) {
    await(&view(a, rank).seen->arrived[block], epoch, a.patience);
  }
  __syncthreads();
  if (threadIdx.x == 0 && a.started == nullptr) a.epochs[block] = epoch;
}

__global__ void gate_kernel(const __grid_constant__ GateArgs a) {
  follow();
  const std::uint64_t epoch = *a.started + (a.advance ? 1 : 0);
  if (a.advance) *a.started = epoch;
  const std::uint64_t value = epoch * a.scale + static_cast<std::uint64_t>(a.offset);
  // A negative value is that of an epoch before the first.
  const bool waits = static_cast<std::int64_t>(value) > 0;
  bool good = true;
  for (int i = 0; i < a.waits && waits && good; ++i) good = await(a.wait[i], value, a.patience);
  if (!good) return;
  for (int i = 0; i < a.raises; ++i) device::store_release(a.raise[i], value);
}

template <class Args>
void launch(void (*kernel)(Args), int blocks, int threads, const Args& args, hipStream_t stream) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  check_runtime(cudaLaunchKernelEx(&config, kernel, args), "kernel launch");
}

} // namespace

void launch_words(const ExchangeArgs& args, hipStream_t stream) {
  launch(slots_kernel<Words>, args.push_blocks, kThreads, args, stream);
}

void launch_lines(const ExchangeArgs& args, hipStream_t stream) {
  launch(slots_kernel<Lines>, args.push_blocks, kThreads, args, stream);
}

void launch_push(const ExchangeArgs& args, hipStream_t stream) {
  if (args.push_blocks + args.own_blocks == 0) return;
  launch(push_kernel, args.push_blocks + args.own_blocks, kThreads, args, stream);
}

void launch_gate(const GateArgs& args, hipStream_t stream) {
  launch(gate_kernel, 1, 1, args, stream);
}

void load_kernels() {
  cudaFuncAttributes attributes{};
  check_runtime(cudaFuncGetAttributes(&attributes, slots_kernel<Words>), "load kernels");
  check_runtime(cudaFuncGetAttributes(&attributes, slots_kernel<Lines>), "load kernels");
  check_runtime(cudaFuncGetAttributes(&attributes, push_kernel), "load kernels");
  check_runtime(cudaFuncGetAttributes(&attributes, gate_kernel), "load kernels");
}

} // namespace ferry::nvidia
