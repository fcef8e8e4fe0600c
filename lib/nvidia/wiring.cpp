// SPDX-License-Identifier: MIT
#include "lib/nvidia/wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/nvidia/agreement.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

namespace {

using core::ErrorKind;
using core::Failure;

constexpr std::uint64_t kChunk = std::uint64_t{1} << 20; // of the path through host memory
constexpr std::uint64_t kSlotDepth = 2; // of pairs that both send
constexpr std::uint64_t kOneSidedDepth = 4; // who only sends may run this far ahead
constexpr std::uint64_t kShortDepth = 8; // of short blocks, whose slots take little room
constexpr std::uint64_t kShort = 256 * 1024;

// What a rank tells of its memory. Sent as bytes.
struct Offer {
  std::uint32_t on_host; // a buffer that is used lies in host memory
  std::uint32_t has_device;
  unsigned char uuid[16];
  Exported receive; // none: no peer can reach it
  Exported arena;
  char unreachable[160]; // why
  Trouble trouble;
};

void check_description(const core::CollectiveDesc& desc, int ranks) {
  if (desc.reduction != nullptr) {
    throw Failure(
        ErrorKind::buffer, "device memory in a reduction, which is not carried",
        "copy the data to host memory");
  }
  bool gaps = false;
  for (int rank = 0; rank < ranks; ++rank) {
    gaps = gaps || !desc.send_block(rank).contiguous() || !desc.recv_block(rank).contiguous();
  }
  if (!gaps) return;
  throw Failure(
      ErrorKind::type, "device memory with gaps inside a block, which is not carried",
      "use a contiguous datatype");
}

class Wirer {
 public:
  Wirer(
      const Blocks& blocks, core::DeviceTeam& team, MappingCache& cache, std::span<const Row> rows)
      : blocks_(blocks), team_(team), cache_(cache), rows_(rows) {}

  Wiring run() {
    exchange_sizes();
    if (wiring_.largest == 0) return std::move(wiring_);
    exchange_offers();
    if (wiring_.staged.empty()) reach_peers();
    if (!wiring_.staged.empty()) wiring_.row.path = Path::engines;
    cut_blocks();
    share_host_words();
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(blocks_.ranks); }
  [[nodiscard]] std::uint64_t words_offset(int writer) const {
    return static_cast<std::uint64_t>(writer) * sizeof(BlockWords);
  }
  // Behind the words of kernels: those of stream operations, where host memory cannot hold them.
  [[nodiscard]] std::uint64_t pair_offset(int writer) const {
    return words_offset(blocks_.ranks) + static_cast<std::uint64_t>(writer) * sizeof(PairWords);
  }
  [[nodiscard]] std::uint64_t epochs_offset() const { return pair_offset(blocks_.ranks); }
  [[nodiscard]] std::uint64_t slots_offset(int writer) const {
    const std::uint64_t first = epochs_offset() + (kMaxBlocks + 8) * sizeof(std::uint64_t);
    return (first + kLineUnit - 1) / kLineUnit * kLineUnit +
           static_cast<std::uint64_t>(writer) * depth_ * wiring_.slot_bytes;
  }

  void exchange_sizes() {
    struct Head {
      std::uint32_t operation;
      std::int32_t root;
      Trouble trouble;
    };
    Head mine{static_cast<std::uint32_t>(blocks_.desc.operation), blocks_.desc.root, {}};
    mine.trouble = attempt([this] { check_description(blocks_.desc, blocks_.ranks); });
    std::vector<Head> heads(count());
    team_.allgather(&mine, sizeof mine, heads.data());
    std::vector<Trouble> troubles;
    for (const Head& head : heads) troubles.push_back(head.trouble);
    agree(troubles);
    for (std::size_t rank = 0; rank < count(); ++rank) {
      if (heads[rank].operation == heads[0].operation && heads[rank].root == heads[0].root) {
        continue;
      }
      throw Failure(
          ErrorKind::mismatch,
          fmt::format("rank {} calls another operation, or with another root, than rank 0", rank),
          "make the same call on all ranks");
    }
    traffic_ = Traffic(blocks_.ranks);
    const std::vector<Traffic::Side> sides = Traffic::of(blocks_);
    team_.allgather(sides.data(), sides.size() * sizeof sides[0], traffic_.data());
    traffic_.check();
    wiring_.largest = traffic_.largest();
    if (blocks_.one_sided()) depth_ = wiring_.largest <= kShort ? kShortDepth : kOneSidedDepth;
    wiring_.row = choose(rows_, blocks_.desc.operation, wiring_.largest);
    const Path path = wiring_.row.path;
    const std::uint64_t data = path == Path::words ? kWordData : kLineData;
    const std::uint64_t unit = path == Path::words ? kWordUnit : kLineUnit;
    if (path == Path::push || path == Path::engines) return;
    wiring_.slot_bytes = (wiring_.largest + data - 1) / data * unit;
  }

  // What the engines get is aligned, as far as both sides allow.
  void cut_blocks() {
    constexpr std::uint64_t kGrain = 64 * 1024;
    const bool whole = wiring_.row.path != Path::engines;
    const auto percent = static_cast<std::uint64_t>(wiring_.row.kernel_percent);
    wiring_.kernel_bytes =
        whole ? wiring_.largest : wiring_.largest / 100 * percent / kGrain * kGrain;
    for (PeerView& view : wiring_.peers) {
      view.source_bytes = std::min(view.source_bytes, wiring_.kernel_bytes);
      view.result_bytes = std::min(view.result_bytes, wiring_.kernel_bytes);
      if (view.source_bytes == 0) view.source = nullptr;
      if (view.result_bytes == 0) view.result = nullptr;
    }
    if (blocks_.ranks > kInlinePeers && !wiring_.peers.empty()) fill_table();
  }

  void offer_memory(Offer& offer) {
    for (const void* pointer : {blocks_.sending().at, blocks_.receiving().at}) {
      if (pointer == nullptr) continue;
      const Kind kind = kind_of(pointer);
      if (kind == Kind::host) offer.on_host = 1;
      if (kind == Kind::managed) {
        std::snprintf(offer.unreachable, sizeof offer.unreachable, "managed memory");
      }
      if (kind != Kind::host) wiring_.device = device_of(pointer);
    }
    if (wiring_.device < 0) return;
    const DeviceScope scope(wiring_.device);
    CUuuid uuid{};
    check_driver(driver().uuid(&uuid, wiring_.device), "cuDeviceGetUuid");
    std::memcpy(offer.uuid, &uuid, sizeof offer.uuid);
    offer.has_device = 1;
    load_kernels();
    wiring_.arena = DeviceBlock(slots_offset(blocks_.ranks));
    offer.arena = export_range(
        wiring_.arena.get(), slots_offset(blocks_.ranks), process_number(), arena_descriptor_);
    offer_receive(offer);
  }

  void offer_receive(Offer& offer) {
    const Piece range = blocks_.receiving();
    if (offer.unreachable[0] != '\0' || offer.on_host != 0 || range.at == nullptr) return;
    try {
      offer.receive = export_range(range.at, range.bytes, process_number(), receive_descriptor_);
    } catch (const Failure& failure) {
      if (failure.status().kind == ErrorKind::buffer) throw;
      std::snprintf(
          offer.unreachable, sizeof offer.unreachable, "%s", failure.status().cause.c_str());
    }
  }

  void exchange_offers() {
    Offer mine{};
    mine.trouble = attempt([&] { offer_memory(mine); });
    offers_.resize(count());
    team_.allgather(&mine, sizeof mine, offers_.data());
    std::vector<Trouble> troubles;
    for (const Offer& offer : offers_) troubles.push_back(offer.trouble);
    agree(troubles);
    for (std::size_t rank = 0; rank < count(); ++rank) look_at(static_cast<int>(rank));
    wiring_.host_memory = mine.on_host != 0;
    note_shared_devices();
  }

  void look_at(int rank) {
    const Offer& offer = offers_[static_cast<std::size_t>(rank)];
    if (!wiring_.staged.empty()) return;
    if (offer.on_host != 0) wiring_.staged = fmt::format("rank {} has host memory", rank);
    if (offer.unreachable[0] != '\0') {
      wiring_.staged = fmt::format("rank {}: {}", rank, offer.unreachable);
    }
  }

  // Kernels of two processes on one device take turns of milliseconds: there a kernel that waits
  // holds up the one that it waits for, and a stream that waits does not.
  void note_shared_devices() {
    for (std::size_t a = 0; a < count(); ++a) {
      for (std::size_t b = a + 1; b < count(); ++b) {
        if (offers_[a].has_device == 0 || offers_[b].has_device == 0 ||
            std::memcmp(offers_[a].uuid, offers_[b].uuid, sizeof offers_[a].uuid) != 0) {
          continue;
        }
        wiring_.note = fmt::format("ranks {} and {} share a GPU, which is slower", a, b);
        wiring_.row = {blocks_.desc.operation, 0, Path::engines, 0, 8, 0, 1};
        return;
      }
    }
  }

  void reach_peers() {
    struct Answer {
      Trouble trouble;
    };
    Answer mine{attempt([&] { open_peers(); })};
    std::vector<Answer> answers(count());
    team_.allgather(&mine, sizeof mine, answers.data());
    for (std::size_t rank = 0; rank < count(); ++rank) {
      if (answers[rank].trouble.kind == 0) continue;
      wiring_.staged =
          fmt::format("rank {} does not reach its peers: {}", rank, answers[rank].trouble.cause);
      wiring_.mappings.clear();
      return;
    }
  }

  [[nodiscard]] char* open(const Exported& range) {
    wiring_.mappings.push_back(cache_.open(range, wiring_.device, process_number()));
    return wiring_.mappings.back()->base() + range.offset;
  }

  void open_peers() {
    const DeviceScope scope(wiring_.device);
    wiring_.peers.resize(count());
    wiring_.seen.resize(count());
    wiring_.written.resize(count());
    wiring_.depth = depth_;
    char* const here = wiring_.arena.get();
    wiring_.epochs = wiring_.arena.at<std::uint64_t>(epochs_offset());
    wiring_.started = wiring_.epochs + kMaxBlocks;
    for (int peer = 0; peer < blocks_.ranks; ++peer) {
      if (peer == blocks_.rank) continue;
      const auto i = static_cast<std::size_t>(peer);
      char* const there = open(offers_[i].arena);
      PeerView& view = wiring_.peers[i];
      const Piece out = blocks_.source(peer);
      const Piece in = blocks_.result(peer);
      view.source = out.at;
      view.source_bytes = out.bytes;
      view.result = in.at;
      view.result_bytes = in.bytes;
      if (out.bytes != 0) {
        view.target = open(offers_[i].receive) + traffic_.side(peer, blocks_.rank).offset;
      }
      view.outbox = there + slots_offset(blocks_.rank);
      view.inbox = here + slots_offset(peer);
      view.written = reinterpret_cast<BlockWords*>(there + words_offset(blocks_.rank));
      view.seen = reinterpret_cast<BlockWords*>(here + words_offset(peer));
      wiring_.written[i] = reinterpret_cast<PairWords*>(there + pair_offset(blocks_.rank));
      wiring_.seen[i] = reinterpret_cast<PairWords*>(here + pair_offset(peer));
    }
  }

  void fill_table() {
    const std::size_t bytes = count() * sizeof(PeerView);
    wiring_.table = DeviceBlock(bytes);
    check_runtime(
        hipMemcpy(wiring_.table.get(), wiring_.peers.data(), bytes, hipMemcpyDefault),
        "cudaMemcpy");
  }

  // A stream that waits looks at host memory often, and at device memory lazily.
  void share_host_words() {
    if (wiring_.row.path != Path::engines) return;
    const bool staged = !wiring_.staged.empty();
    const std::uint64_t words = (count() * sizeof(PairWords) + 4095) / 4096 * 4096;
    wiring_.chunk_bytes =
        staged ? std::max<std::uint64_t>(1, std::min(kChunk, wiring_.largest)) : 0;
    const std::uint64_t stage = 2 * count() * wiring_.chunk_bytes;
    team_.share(words + stage);
    Trouble mine = attempt([&] { pin(words + stage); });
    std::vector<Trouble> troubles(count());
    team_.allgather(&mine, sizeof mine, troubles.data());
    if (staged) agree(troubles);
    const bool all =
        std::all_of(troubles.begin(), troubles.end(), [](const Trouble& t) { return t.kind == 0; });
    wiring_.host_words = all;
    if (!all) return wiring_.registrations.clear();
    wiring_.seen.resize(count());
    wiring_.written.resize(count());
    for (std::size_t i = 0; i < count(); ++i) {
      auto* const mine_words = reinterpret_cast<PairWords*>(team_.block(blocks_.rank));
      auto* const peers_words = reinterpret_cast<PairWords*>(team_.block(static_cast<int>(i)));
      wiring_.seen[i] = mine_words + i;
      wiring_.written[i] = peers_words + blocks_.rank;
      wiring_.stages.push_back(reinterpret_cast<char*>(team_.block(static_cast<int>(i))) + words);
    }
    if (staged && wiring_.device >= 0) {
      wiring_.started = wiring_.arena.at<std::uint64_t>(epochs_offset()) + kMaxBlocks;
    }
  }

  void pin(std::uint64_t bytes) {
    if (wiring_.device < 0) return;
    const DeviceScope scope(wiring_.device);
    for (int rank = 0; rank < blocks_.ranks; ++rank) {
      wiring_.registrations.emplace_back(team_.block(rank), bytes);
    }
  }

  const Blocks& blocks_;
  core::DeviceTeam& team_;
  MappingCache& cache_;
  std::span<const Row> rows_;
  Traffic traffic_;
  std::vector<Offer> offers_;
  Descriptor arena_descriptor_;
  Descriptor receive_descriptor_;
  std::uint64_t depth_ = kSlotDepth;
  Wiring wiring_;
};

} // namespace

Wiring wire(
    const Blocks& blocks, core::DeviceTeam& team, MappingCache& cache, std::span<const Row> rows) {
  return Wirer(blocks, team, cache, rows).run();
}

} // namespace ferry::nvidia
