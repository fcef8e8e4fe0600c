// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/nvidia/blocks.hpp"
#include "lib/nvidia/kernels.hpp"
#include "lib/nvidia/memory.hpp"
#include "lib/nvidia/owners.hpp"
#include "lib/nvidia/table.hpp"

namespace ferry::nvidia {

// Words of one writer at one reader for stream operations: only ever raised, never reset.
struct alignas(64) PairWords {
  std::uint64_t ready;
  std::uint64_t arrived[kMaxLanes];
  std::uint64_t produced; // chunks in the stage
  std::uint64_t consumed;
};

// Everything that the ranks had to tell each other, in the terms of this rank.
struct Wiring {
  std::string staged; // why the blocks go through host memory; empty: they do not
  std::string note; // what else is worth telling
  bool host_memory = false; // this rank's buffers lie in host memory
  int device = -1;
  Row row{};
  std::uint64_t largest = 0; // bytes of a block between two ranks
  std::uint64_t slot_bytes = 0;
  std::uint64_t kernel_bytes = 0; // of a block, those that a kernel moves; the rest: engines
  std::vector<PeerView> peers;
  std::vector<PairWords*> seen; // here, by writer
  std::vector<PairWords*> written; // at the peers, of this rank
  std::vector<char*> stages; // the stage of each rank: two chunks for each receiver
  std::uint64_t chunk_bytes = 0;
  DeviceBlock arena;
  DeviceBlock table; // of PeerView, where they are too many to be passed by value
  std::uint64_t* epochs = nullptr;
  std::uint64_t* started = nullptr;
  std::uint64_t depth = 0;
  bool host_words = false;
  std::vector<Registration> registrations;
  std::vector<std::shared_ptr<Mapping>> mappings;
};

// Collective. Throws Failure alike on all ranks.
[[nodiscard]] Wiring wire(
    const Blocks& blocks, core::DeviceTeam& team, MappingCache& cache, std::span<const Row> rows);

} // namespace ferry::nvidia
