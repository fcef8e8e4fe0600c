// SPDX-License-Identifier: MIT
#include "lib/memory/peer_heap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

namespace ferry::core {
namespace {

bool same_stamp(const std::uint64_t (&a)[2], const std::uint64_t (&b)[2]) {
  return a[0] == b[0] && a[1] == b[1];
}

// Heaps that are mapped now, by stamp; weak, so that the last communicator unmaps.
struct Known {
  HeapId id;
  std::weak_ptr<PeerHeap> heap;
};

struct Registry {
  std::mutex mutex;
  std::vector<Known> known;
};

Registry& registry() {
  static auto* const registry = new Registry; // outlives every user
  return *registry;
}

int open_segment(const HeapId& id, std::string* reason) {
  if (id.shm_name[0] != 0) {
    const int descriptor = shm_open(id.shm_name, O_RDWR | O_CLOEXEC, 0);
    if (descriptor >= 0) return descriptor;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", id.pid, id.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) *reason = fmt::format("open {}: {}", path, std::strerror(errno));
  return descriptor;
}

std::shared_ptr<PeerHeap> map(const HeapId& id, std::string* reason) {
  const int descriptor = open_segment(id, reason);
  if (descriptor < 0) return nullptr;
  // Another pid namespace may show another file under this path: too short a file must not be
  // mapped, and the stamp must be the one that was announced.
  const off_t size = lseek(descriptor, 0, SEEK_END);
  void* memory = MAP_FAILED;
  if (size >= 0 && static_cast<std::uint64_t>(size) == id.bytes) {
    memory =
        mmap(nullptr, id.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  if (memory == MAP_FAILED) {
    *reason = fmt::format("map {} bytes of process {}: {}", id.bytes, id.pid, std::strerror(error));
    return nullptr;
  }
  auto heap = std::make_shared<PeerHeap>(id, static_cast<std::byte*>(memory), true);
  if (same_stamp(heap->header().stamp, id.stamp)) return heap;
  *reason = fmt::format("process {} is another one here (pid namespaces differ)", id.pid);
  return nullptr;
}

} // namespace

std::shared_ptr<PeerHeap> PeerHeap::attach(const HeapId& id, std::string* reason) {
  const Heap* own = Heap::existing();
  if (own != nullptr && same_stamp(own->id().stamp, id.stamp)) {
    return std::make_shared<PeerHeap>(id, own->base(), false);
  }
  const std::lock_guard lock(registry().mutex);
  auto& known = registry().known;
  std::erase_if(known, [](const Known& entry) { return entry.heap.expired(); });
  for (const Known& entry : known) {
    if (!same_stamp(entry.id.stamp, id.stamp)) continue;
    if (auto heap = entry.heap.lock()) return heap;
  }
  auto heap = map(id, reason);
  if (heap != nullptr) known.push_back({id, heap});
  return heap;
}

PeerHeap::~PeerHeap() {
  if (mapped_) munmap(base_, id_.bytes);
}

bool attach_works(const HeapId& id, const HeapHeader& header) {
  const std::uint64_t expected = header.probe.load(std::memory_order_acquire);
  const std::uint64_t address = header.probe_address.load(std::memory_order_acquire);
  std::uint64_t seen = 0;
  const iovec here{&seen, sizeof seen};
  const iovec there{reinterpret_cast<void*>(address), sizeof seen};
  return address != 0 && process_vm_readv(id.pid, &here, 1, &there, 1, 0) == sizeof seen &&
         seen == expected;
}

void offer_probe(Heap& heap) {
  static std::uint64_t word = 0;
  if (heap.header().probe_address.load(std::memory_order_relaxed) != 0) return;
  word = heap.id().stamp[1];
  heap.header().probe.store(word, std::memory_order_relaxed);
  heap.header().probe_address.store(
      reinterpret_cast<std::uint64_t>(&word), std::memory_order_release);
}

} // namespace ferry::core
