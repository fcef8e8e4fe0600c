// SPDX-License-Identifier: MIT
// A put with a signal on a ring, and a reader that carries its packets out. No MPI, no GPU.
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

} // namespace

int main() {
  char source[2500], destination[2500] = {};
  for (int i = 0; i < 2500; ++i) source[i] = static_cast<char>(i * 7);
  std::uint64_t arrived = 0;
  Ring ring;
  const SingleProducer queue(ring.handle());
  const PutResult posted = put_signal(queue, destination, source, sizeof source, &arrived);
  if (posted.status != PutStatus::done || test_signal(&arrived, 1)) return 1;
  consume(ring); // three copies, then the signal
  const bool consumed = flush(queue, posted, Attempts(0)) && wait_signal(&arrived, 1, Attempts(0));
  return consumed && std::memcmp(source, destination, sizeof source) == 0 ? 0 : 1;
}
