// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/nccl.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <vector>

#include "apps/ferry-bench/device/gpu_runtime.hpp"

namespace ferry::bench {

namespace {

#if defined(FERRY_BENCH_HIP)
constexpr const char* kFile = "librccl.so.1";
constexpr auto* kAlltoall = "ncclAllToAll";
using Alltoall = decltype(&ncclAllToAll);
#else
constexpr const char* kFile = "libnccl.so.2";
constexpr auto* kAlltoall = "ncclAlltoAll";
using Alltoall = decltype(&ncclAlltoAll);
#endif

// What was found in that file.
struct Library {
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
#if defined(FERRY_BENCH_HIP)
  decltype(&ncclCommInitRank) init = nullptr;
#else
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) release = nullptr;
  decltype(&ncclCommWindowRegister) window = nullptr;
#endif
  Alltoall alltoall = nullptr;
  decltype(&ncclAllGather) allgather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclGroupStart) begin = nullptr;
  decltype(&ncclGroupEnd) end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  std::string missing;
};

template <class Call>
void look_up(Library& library, void* handle, Call& call, const char* name) {
  call = reinterpret_cast<Call>(dlsym(handle, name));
  if (call == nullptr) library.missing = std::string(kFile) + " has no " + name;
}

Library load() {
  Library l;
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    l.missing = dlerror();
    return l;
  }
  look_up(l, handle, l.error_string, "ncclGetErrorString");
  look_up(l, handle, l.version, "ncclGetVersion");
  look_up(l, handle, l.unique_id, "ncclGetUniqueId");
  look_up(l, handle, l.abort, "ncclCommAbort");
#if defined(FERRY_BENCH_HIP)
  look_up(l, handle, l.init, "ncclCommInitRank");
#else
  look_up(l, handle, l.init, "ncclCommInitRankConfig");
  look_up(l, handle, l.allocate, "ncclMemAlloc");
  look_up(l, handle, l.release, "ncclMemFree");
  look_up(l, handle, l.window, "ncclCommWindowRegister");
#endif
  look_up(l, handle, l.alltoall, kAlltoall);
  look_up(l, handle, l.allgather, "ncclAllGather");
  look_up(l, handle, l.broadcast, "ncclBroadcast");
  look_up(l, handle, l.begin, "ncclGroupStart");
  look_up(l, handle, l.end, "ncclGroupEnd");
  look_up(l, handle, l.send, "ncclSend");
  look_up(l, handle, l.recv, "ncclRecv");
  return l;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + library().error_string(result));
}

} // namespace

const char* name_of(NcclMode mode) {
  switch (mode) {
    case NcclMode::plain:
      return "default";
    case NcclMode::symmetric:
      return "symmetric";
    case NcclMode::zero_cta:
      return "zero-cta";
  }
  return "?";
}

struct Nccl::Parts {
  NcclMode mode;
  ncclComm_t comm = nullptr;
  std::vector<void*> buffers;
};

std::string Nccl::missing() {
  return library().missing;
}

Nccl::Nccl(NcclMode mode, int rank, int ranks, const Spread& spread)
    : parts_(std::make_unique<Parts>()) {
  if (!missing().empty()) throw std::runtime_error(missing());
  parts_->mode = mode;
  ncclUniqueId id;
  if (rank == 0) check(library().unique_id(&id), "ncclGetUniqueId");
  spread(&id, sizeof id);
#if defined(FERRY_BENCH_HIP)
  check(library().init(&parts_->comm, ranks, id, rank), "ncclCommInitRank");
#else
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (mode == NcclMode::zero_cta) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  check(library().init(&parts_->comm, ranks, id, rank, &config), "ncclCommInitRankConfig");
#endif
}

// Not the orderly end, which waits for peers that may be gone.
Nccl::~Nccl() {
  for (void* buffer : parts_->buffers) {
    if (parts_->mode == NcclMode::plain) cudaFree(buffer);
  }
  library().abort(parts_->comm);
}

void* Nccl::allocate(std::size_t bytes) {
  void* buffer = nullptr;
  if (parts_->mode == NcclMode::plain) {
    if (cudaMalloc(&buffer, bytes) != cudaSuccess) throw std::runtime_error("cudaMalloc");
    parts_->buffers.push_back(buffer);
    return buffer;
  }
#if !defined(FERRY_BENCH_HIP)
  check(library().allocate(&buffer, bytes), "ncclMemAlloc");
  ncclWindow_t window = nullptr;
  check(
      library().window(parts_->comm, buffer, bytes, &window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
  parts_->buffers.push_back(buffer);
#endif
  return buffer;
}

void Nccl::alltoall(const void* send, void* recv, std::size_t block, void* stream) {
  check(
      library().alltoall(
          send, recv, block, ncclInt8, parts_->comm, static_cast<cudaStream_t>(stream)),
      kAlltoall);
}

void Nccl::allgather(const void* send, void* recv, std::size_t block, void* stream) {
  check(
      library().allgather(
          send, recv, block, ncclInt8, parts_->comm, static_cast<cudaStream_t>(stream)),
      "ncclAllGather");
}

void Nccl::broadcast(const void* send, void* recv, std::size_t bytes, int root, void* stream) {
  check(
      library().broadcast(
          send, recv, bytes, ncclInt8, root, parts_->comm, static_cast<cudaStream_t>(stream)),
      "ncclBroadcast");
}

void Nccl::exchange(const Blocks& send, const Blocks& recv, void* stream) {
  const auto target = static_cast<cudaStream_t>(stream);
  check(library().begin(), "ncclGroupStart");
  for (std::size_t peer = 0; peer < send.bytes.size(); ++peer) {
    const int rank = static_cast<int>(peer);
    if (send.bytes[peer] != 0) {
      const char* const from = static_cast<char*>(send.buffer) + send.offsets[peer];
      check(
          library().send(from, send.bytes[peer], ncclInt8, rank, parts_->comm, target), "ncclSend");
    }
    if (recv.bytes[peer] != 0) {
      char* const to = static_cast<char*>(recv.buffer) + recv.offsets[peer];
      check(library().recv(to, recv.bytes[peer], ncclInt8, rank, parts_->comm, target), "ncclRecv");
    }
  }
  check(library().end(), "ncclGroupEnd");
}

std::string Nccl::version() const {
  int version = 0;
  check(library().version(&version), "ncclGetVersion");
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace ferry::bench
