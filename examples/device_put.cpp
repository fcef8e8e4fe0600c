// SPDX-License-Identifier: MIT
// A put with a signal on a ring, and a reader that carries its packets out; then the same between
// the ranks of a team. No MPI, no GPU.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <ferry/device.hpp>

using namespace ferry::device;

namespace {

// Memory of a ring for one producer. Cursors start at zero.
struct Ring {
  alignas(64) std::uint32_t dwords[256] = {};
  std::uint64_t wptr = 0, rptr = 0, doorbell = 0, reserved = 0, rptr_hint = 0;
  RingHandle handle() {
    RingHandle h;
    h.base = dwords;
    h.bytes = sizeof dwords;
    h.wptr = &wptr, h.rptr = &rptr, h.doorbell = &doorbell;
    h.reserved = &reserved, h.rptr_hint = &rptr_hint;
    h.max_copy_bytes = 1000; // so that this small put is cut into packets
    return h;
  }
};

void* address(const std::uint32_t* dw) {
  return reinterpret_cast<void*>(dw[0] | std::uint64_t{dw[1]} << 32);
}

// Carries out what lies below the doorbell; an engine would check every address first.
void consume(Ring& ring) {
  const std::uint64_t end = load_acquire(&ring.doorbell);
  for (std::uint64_t at = ring.rptr; at < end;) {
    const std::uint32_t* dw = ring.dwords + at % sizeof ring.dwords / 4;
    const PacketInfo* info = find_packet(dw[0]);
    if (info == nullptr) return;
    std::printf("%s\n", info->name);
    if (info->kind == PacketKind::copy) std::memcpy(address(dw + 5), address(dw + 3), dw[1] + 1);
    if (info->kind == PacketKind::atomic) *static_cast<std::uint64_t*>(address(dw + 1)) += dw[3];
    at += packet_dwords(*info, dw) * 4;
    store_release(&ring.rptr, at);
  }
}

bool put_on_queue(const char* source, std::uint64_t bytes) {
  char destination[2500] = {};
  std::uint64_t arrived = 0;
  Ring ring;
  const SingleProducer queue(ring.handle());
  const PutResult posted = put_signal(queue, destination, source, bytes, &arrived);
  if (posted.status != PutStatus::done || test_signal(&arrived, 1)) return false;
  consume(ring); // three copies, then the signal
  const bool consumed = flush(queue, posted, Attempts(0)) && wait_signal(&arrived, 1, Attempts(0));
  return consumed && std::memcmp(source, destination, bytes) == 0;
}

// Two ranks in this process, and the ring from rank 0 to rank 1.
struct Pair {
  Ring ring;
  char windows[2][4096] = {};
  std::uint64_t signals[2][signal_words(2)] = {}, counts[2][count_words(2)] = {};
  std::uint64_t settled = 0, landed = 0;
  PeerHandle peers[2];
  Pair() {
    peers[1].ring = ring.handle();
    peers[1].settled = &settled;
    for (int rank = 0; rank < 2; ++rank) {
      peers[rank].window = windows[rank];
      peers[rank].signals = signals[rank];
    }
  }
  TeamHandle handle(std::uint32_t rank) {
    TeamHandle team;
    team.rank = rank;
    team.ranks = 2;
    team.peers = peers;
    team.window_bytes = sizeof windows[0];
    team.threshold = ferry::device::kSoftwareThreshold.bytes;
    team.counts = counts[rank];
    team.landed = &landed;
    return team;
  }
};

bool put_in_team(const char* source) {
  Pair pair;
  const TeamHandle team = pair.handle(0);
  const PutResult stored = put_signal(team, 1, 0, source, 100); // below the threshold
  const PutResult posted = put_signal(team, 1, 100, source + 100, 2300); // 3 copies and a signal
  const PutResult behind = put_signal(team, 1, 2400, source + 2400, 100); // rides behind them
  if (stored.ticket != 0 || behind.ticket <= posted.ticket) return false;
  if (test_signal(pair.handle(1), 0, 2)) return false;
  consume(pair.ring);
  if (!wait_signal(pair.handle(1), 0, 3, Attempts(0))) return false;
  return std::memcmp(source, pair.windows[1], 2500) == 0;
}

} // namespace

int main() {
  char source[2500];
  for (int i = 0; i < 2500; ++i) source[i] = static_cast<char>(i * 7);
  return put_on_queue(source, sizeof source) && put_in_team(source) ? 0 : 1;
}
