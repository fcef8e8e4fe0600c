// SPDX-License-Identifier: MIT
#include "lib/exec/recorder.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace ferry::core {
namespace {

constexpr std::uint64_t kIrregular = 0x80;
constexpr int kRootShift = 8;

bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::gather ||
         operation == Operation::scatter || operation == Operation::reduce;
}

} // namespace

void Recorder::note(const CollectiveDesc& desc, std::uint64_t call) {
  const std::uint64_t number = count_.load(std::memory_order_relaxed) + 1;
  Entry& entry = entries_[number % kEntries];
  const bool irregular = is_exchange(desc);
  entry.number.store(0, std::memory_order_relaxed);
  // Pairs with the fence in print(): whoever sees what follows sees the 0, too.
  std::atomic_thread_fence(std::memory_order_release);
  entry.call.store(call, std::memory_order_relaxed);
  entry.bytes.store(irregular ? 0 : desc.block_bytes(), std::memory_order_relaxed);
  entry.what.store(
      (static_cast<std::uint64_t>(desc.root) << kRootShift) | (irregular ? kIrregular : 0) |
          static_cast<std::uint64_t>(desc.operation),
      std::memory_order_relaxed);
  entry.number.store(number, std::memory_order_release);
  count_.store(number, std::memory_order_release);
}

std::string Recorder::print(std::uint64_t number) const {
  const Entry& entry = entries_[number % kEntries];
  if (entry.number.load(std::memory_order_acquire) != number) return {};
  const std::uint64_t call = entry.call.load(std::memory_order_relaxed);
  const std::uint64_t bytes = entry.bytes.load(std::memory_order_relaxed);
  const std::uint64_t what = entry.what.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.number.load(std::memory_order_relaxed) != number) return {};
  const auto operation = static_cast<Operation>(what & (kIrregular - 1));
  std::string text =
      call == 0 ? std::string("start of a persistent ") : fmt::format("call {} ", call);
  text += name_of(operation);
  if ((what & kIrregular) != 0) {
    text += " of blocks of their own";
  } else if (operation != Operation::barrier) {
    text += fmt::format(" of {} bytes", bytes);
  }
  if (has_root(operation)) text += fmt::format(" with root {}", what >> kRootShift);
  return text;
}

std::string Recorder::last(std::size_t most) const {
  const std::uint64_t newest = count_.load(std::memory_order_acquire);
  const std::uint64_t shown = std::min<std::uint64_t>({newest, most, kEntries - 1});
  std::string text;
  for (std::uint64_t number = newest - shown + 1; number <= newest; ++number) {
    const std::string one = print(number);
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

} // namespace ferry::core
