// SPDX-License-Identifier: MIT
#include "lib/interpose/heap/large_blocks.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>

#include "lib/interpose/shared_heap.hpp"

namespace ferry::interpose {
namespace {

constexpr std::size_t kAskMemory = std::size_t{64} << 20; // smaller blocks go without the question

// Set while this thread is in here: what the heap allocates for itself comes from the C library.
__attribute__((tls_model("initial-exec"))) thread_local bool busy = false;

class Busy {
 public:
  Busy() { busy = true; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { busy = false; }
};

LargeBlocks* of_process = nullptr;

// MemAvailable of this machine in bytes, read without an allocation; 0 when it is not known.
std::size_t available_memory() noexcept {
  const int file = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* found = std::strstr(text, "MemAvailable:");
  return found != nullptr ? std::strtoull(found + 13, nullptr, 10) * 1024 : 0;
}

// Pages are reserved here and now, while those of the C library come with the first touch: what a
// program allocates and never fills must not exhaust the machine.
bool fits_memory(std::size_t bytes) noexcept {
  return bytes < kAskMemory || bytes < available_memory() / 2;
}

std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + LargeBlocks::kPage - 1) / LargeBlocks::kPage * LargeBlocks::kPage;
}

} // namespace

void LargeBlocks::enable() noexcept {
  of_process = this;
  pthread_atfork(
      [] { of_process->mutex_.lock(); }, [] { of_process->mutex_.unlock(); },
      [] { of_process->enter_child(); });
  state_.store(State::enabled, std::memory_order_release);
}

void LargeBlocks::enter_child() noexcept {
  mutex_.unlock();
  if (state_.load(std::memory_order_relaxed) == State::open) ferry_heap_leave();
  state_.store(State::child, std::memory_order_relaxed);
}

bool LargeBlocks::open() noexcept {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::enabled) {
    return state_.load(std::memory_order_relaxed) == State::open;
  }
  char* begin = nullptr;
  char* end = nullptr;
  void* sizes = MAP_FAILED;
  if (ferry_heap_open(&begin, &end)) {
    const std::size_t pages = static_cast<std::size_t>(end - begin) / kPage;
    sizes = mmap(
        nullptr, pages * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (sizes == MAP_FAILED) {
    state_.store(State::failed, std::memory_order_relaxed);
    return false;
  }
  sizes_ = static_cast<std::uint64_t*>(sizes);
  begin_.store(begin, std::memory_order_relaxed);
  end_.store(end, std::memory_order_release); // pairs with the acquire in owns()
  state_.store(State::open, std::memory_order_release);
  return true;
}

std::uint64_t& LargeBlocks::size_word(const void* block) const noexcept {
  const auto* place = static_cast<const char*>(block);
  return sizes_[static_cast<std::size_t>(place - begin_.load(std::memory_order_relaxed)) / kPage];
}

std::size_t LargeBlocks::size_of(const void* block) const noexcept {
  return size_word(block);
}

LargeBlocks::Allocation LargeBlocks::allocate(std::size_t bytes) noexcept {
  const State state = state_.load(std::memory_order_acquire);
  if (bytes < kSmallest || busy || (state != State::open && state != State::enabled)) return {};
  const Busy scope;
  if (state == State::enabled && !open()) return {};
  if (void* block = take_kept(whole_pages(bytes)); block != nullptr) return {block, false};
  if (bytes > PTRDIFF_MAX || !fits_memory(bytes)) return {};
  void* block = ferry_heap_allocate(bytes);
  if (block == nullptr) return {};
  size_word(block) = whole_pages(bytes);
  return {block, true};
}

void* LargeBlocks::take_kept(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  for (Kept& kept : kept_) {
    // Not one that is much too large: its rest would be lost for as long as this block lives.
    if (kept.block == nullptr || kept.bytes < bytes || kept.bytes - bytes > bytes / 8) continue;
    void* block = kept.block;
    kept_bytes_ -= kept.bytes;
    kept = {};
    return block;
  }
  return nullptr;
}

void* LargeBlocks::keep(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes > kLargestKept) return block;
  Kept* empty = nullptr;
  Kept* oldest = nullptr;
  for (Kept& kept : kept_) {
    if (kept.block == nullptr) {
      empty = &kept;
    } else if (oldest == nullptr || kept.since < oldest->since) {
      oldest = &kept;
    }
  }
  if (empty != nullptr && kept_bytes_ + bytes <= kMostKeptBytes) {
    *empty = {block, bytes, ++releases_};
    kept_bytes_ += bytes;
    return nullptr;
  }
  void* out = oldest->block; // there is one: a single block always has room
  kept_bytes_ -= oldest->bytes;
  *oldest = {};
  return out;
}

void LargeBlocks::give_back(void* block) noexcept {
  size_word(block) = 0;
  ferry_heap_release(block);
}

void LargeBlocks::release(void* block) noexcept {
  if (state_.load(std::memory_order_relaxed) == State::child) return; // it is the parent's
  const Busy scope;
  const std::size_t bytes = size_of(block);
  void* out = keep(block, bytes);
  for (; out != nullptr && out != block; out = keep(block, bytes)) give_back(out);
  if (out == block) give_back(block);
}

} // namespace ferry::interpose
