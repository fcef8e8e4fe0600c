// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ferry::bench {

// NCCL as users can have it; each a communicator of its own.
enum class NcclMode {
  plain, // any buffers
  symmetric, // buffers of ncclMemAlloc, registered as symmetric windows
  zero_cta, // the same, and no SM may be used: copy engines where NCCL has them
};
// RCCL is the same library for AMD GPUs, as far as it is used here: with any buffers.
#if defined(FERRY_BENCH_HIP)
inline constexpr const char* kNcclName = "rccl";
inline constexpr NcclMode kNcclModes[] = {NcclMode::plain};
#else
inline constexpr const char* kNcclName = "nccl";
inline constexpr NcclMode kNcclModes[] = {NcclMode::plain, NcclMode::symmetric, NcclMode::zero_cta};
#endif
[[nodiscard]] const char* name_of(NcclMode mode);

// NCCL, loaded at run time: nothing of it is needed to build. Device pointers; the stream is a
// cudaStream_t. Throws std::runtime_error with NCCL's text.
class Nccl {
 public:
  // Gives the bytes of rank 0 to all; collective.
  using Spread = std::function<void(void* data, std::size_t bytes)>;

  Nccl(NcclMode mode, int rank, int ranks, const Spread& spread);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  // A buffer as the mode wants it; collective, lives as long as this. All ranks ask alike.
  [[nodiscard]] void* allocate(std::size_t bytes);

  void alltoall(const void* send, void* recv, std::size_t block, void* stream);
  void allgather(const void* send, void* recv, std::size_t block, void* stream);
  void broadcast(const void* send, void* recv, std::size_t bytes, int root, void* stream);
  // Blocks of any lengths, one for each rank: by sends and receives in a group, as programs do it,
  // since NCCL has no call for it.
  struct Blocks {
    void* buffer;
    std::span<const std::uint64_t> bytes;
    std::span<const std::uint64_t> offsets;
  };
  void exchange(const Blocks& send, const Blocks& recv, void* stream);
  [[nodiscard]] std::string version() const;

  // Why there is no NCCL on this machine; empty: there is.
  [[nodiscard]] static std::string missing();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace ferry::bench
