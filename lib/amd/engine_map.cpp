// SPDX-License-Identifier: MIT
#include "lib/amd/engine_map.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>

namespace ferry::amd {
namespace {

constexpr std::uint32_t kHostEngines = 2; // left to copies from and to the host
constexpr std::uint32_t kMostEngines = 32; // bits of a mask
constexpr std::uint32_t kMi308x = 0x74a2;

// Of the kernel for 8 GPUs, each unpartitioned: [place of the source][place of the destination].
constexpr int kPlaces = 8;
constexpr int kBoard[kPlaces][kPlaces] = {
    {-1, 14, 12, 2, 4, 8, 10, 6}, {14, -1, 2, 10, 8, 4, 6, 12}, {10, 2, -1, 12, 14, 6, 4, 8},
    {2, 12, 10, -1, 6, 14, 8, 4}, {4, 8, 14, 6, -1, 10, 12, 2}, {8, 4, 6, 14, 12, -1, 2, 10},
    {10, 6, 4, 8, 12, 2, -1, 14}, {6, 12, 8, 4, 2, 10, 14, -1},
};
constexpr std::uint32_t kBoardEngines = 16;

// The firmware of some devices lists engines that are fused off: queues on odd ones hang.
std::uint32_t folded(const Gpu& gpu, std::uint32_t engine) {
  return gpu.device_id == kMi308x ? engine & ~1u : engine;
}

bool on_board(const Gpu& gpu) {
  return gpu.oam >= 0 && gpu.oam < kPlaces && gpu.engines() >= kBoardEngines &&
         (gpu.gfx == 90402 || gpu.gfx == 90500);
}

class Collector {
 public:
  Collector(const Gpu& gpu, const BadEngines& bad) : gpu_(gpu), bad_(bad) {}
  void add(std::uint32_t engine) {
    const std::uint32_t real = folded(gpu_, engine);
    const bool known = std::find(engines_.begin(), engines_.end(), real) != engines_.end();
    if (real < gpu_.engines() && !known && !bad_.contains(real)) engines_.push_back(real);
  }
  void add_mask(std::uint32_t mask) {
    for (std::uint32_t engine = 0; engine < kMostEngines; ++engine) {
      if ((mask >> engine & 1) != 0) add(engine);
    }
  }
  // The host's engines only where nothing else is left.
  std::vector<std::uint32_t> take() {
    std::vector<std::uint32_t> others;
    for (const std::uint32_t engine : engines_) {
      if (engine >= kHostEngines) others.push_back(engine);
    }
    return others.empty() ? engines_ : others;
  }

 private:
  const Gpu& gpu_;
  const BadEngines& bad_;
  std::vector<std::uint32_t> engines_;
};

// Pairs begin at different engines, so that one-to-all copies spread.
void rotate_to(std::vector<std::uint32_t>& engines, int by) {
  if (engines.empty()) return;
  const auto shift = static_cast<std::size_t>(by) % engines.size();
  std::rotate(engines.begin(), engines.begin() + static_cast<std::ptrdiff_t>(shift), engines.end());
}

std::vector<std::uint32_t> all_engines(const Gpu& gpu, const BadEngines& bad) {
  Collector all(gpu, bad);
  for (std::uint32_t engine = 0; engine < gpu.engines(); ++engine) all.add(engine);
  return all.take();
}

} // namespace

EngineChoice engines_to(
    const Gpu& from, const Gpu& to, const BadEngines& bad, std::uint32_t preferred) {
  if (from.engines() == 0) return {{}, fmt::format("{} has no SDMA engines", from.name())};
  const Link* const link = from.link_to(to.node);
  Collector chosen(from, bad);
  std::string why = "the kernel recommends none: all but the host's";
  bool told = true;
  if (preferred != 0) {
    chosen.add_mask(preferred);
    why = fmt::format("the ROCm runtime prefers mask {:#x}", preferred);
  } else if (link != nullptr && link->engines != 0) {
    chosen.add_mask(link->engines);
    why = fmt::format("the kernel recommends mask {:#x}", link->engines);
  } else if (on_board(from) && on_board(to) && from.oam != to.oam) {
    chosen.add(static_cast<std::uint32_t>(kBoard[from.oam][to.oam]));
    why = fmt::format("board map, place {} to {}", from.oam, to.oam);
  } else {
    told = false;
  }
  EngineChoice choice{chosen.take(), why};
  if (choice.engines.empty()) {
    if (told) choice.why += ", none of which works: all others";
    choice.engines = all_engines(from, bad);
  }
  if (choice.engines.empty()) choice.why = fmt::format("no SDMA engine of {} works", from.name());
  // A pair has an engine of its own where the mask has one bit; else they spread by destination.
  rotate_to(choice.engines, to.node);
  return choice;
}

EngineChoice engines_to_self(const Gpu& gpu, const BadEngines& bad) {
  if (gpu.engines() == 0) return {{}, fmt::format("{} has no SDMA engines", gpu.name())};
  const bool spread = generation_of(gpu.gfx) == device::Generation::gfx1250;
  if (spread) return {all_engines(gpu, bad), "own copies are spread over the engines"};
  Collector chosen(gpu, bad);
  chosen.add(0);
  EngineChoice choice{chosen.take(), "own copies and signals use engine 0"};
  if (!choice.engines.empty()) return choice;
  return {all_engines(gpu, bad), "engine 0 does not work: all others"};
}

std::uint32_t queue_budget(const Gpu& gpu) {
  constexpr std::uint32_t kUsual = 8;
  constexpr std::uint32_t kOss7 = 6;
  const bool oss7 = generation_of(gpu.gfx) == device::Generation::gfx1250;
  const std::uint32_t stated = gpu.queues_per_engine != 0 ? gpu.queues_per_engine : kUsual;
  const std::uint32_t each = oss7 ? std::min(stated, kOss7) : stated;
  const std::uint32_t engines = gpu.device_id == kMi308x ? (gpu.engines() + 1) / 2 : gpu.engines();
  return engines * each;
}

} // namespace ferry::amd
