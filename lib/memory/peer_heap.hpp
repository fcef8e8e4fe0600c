// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "lib/memory/heap.hpp"

namespace ferry::core {

// The heap of a process as this process sees it. Heaps are mapped once for all communicators and
// stay mapped as long as someone holds them.
class PeerHeap {
 public:
  // Maps the heap and recognises it by its stamp. Null when this process cannot reach it; then
  // *reason tells why.
  static std::shared_ptr<PeerHeap> attach(const HeapId& id, std::string* reason);

  PeerHeap(const HeapId& id, std::byte* base, bool mapped)
      : id_(id), base_(base), mapped_(mapped) {}
  PeerHeap(const PeerHeap&) = delete;
  PeerHeap& operator=(const PeerHeap&) = delete;
  ~PeerHeap();

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return id_.bytes; }
  [[nodiscard]] HeapHeader& header() const noexcept {
    return *reinterpret_cast<HeapHeader*>(base_);
  }

 private:
  HeapId id_;
  std::byte* base_;
  bool mapped_; // false for the heap of this process itself
};

// Can this process read the private memory of the process of that heap? Tried with a real transfer.
[[nodiscard]] bool attach_works(const HeapId& id, const HeapHeader& header);
// Offer a private word for attach_works().
void offer_probe(Heap& heap);

} // namespace ferry::core
