// SPDX-License-Identifier: MIT
#include "lib/memory/heap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/config/config.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSmallestRange = std::uint64_t{64} << 20;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::atomic<Heap*>& slot() {
  static std::atomic<Heap*> heap{nullptr};
  return heap;
}

} // namespace

// Never destroyed: peers may still read when this process is about to end.
Heap& Heap::instance() {
  static std::mutex mutex;
  if (Heap* heap = existing()) return *heap;
  const std::lock_guard lock(mutex);
  if (existing() == nullptr) slot().store(new Heap, std::memory_order_release);
  return *existing();
}

Heap* Heap::existing() noexcept {
  return slot().load(std::memory_order_acquire);
}

Heap::Heap() {
  id_.pid = getpid();
  if (getrandom(id_.stamp, sizeof id_.stamp, 0) != sizeof id_.stamp) fail("getrandom", errno);
  make_segment();
  try {
    map_range();
    reserve(0, round_up(sizeof(HeapHeader)));
  } catch (...) {
    forget_name();
    if (base_ != nullptr) munmap(base_, id_.bytes);
    close(id_.descriptor);
    throw;
  }
  live_[0] = round_up(sizeof(HeapHeader));
  free_[live_[0]] = id_.bytes - live_[0];
  header().stamp[0] = id_.stamp[0];
  header().stamp[1] = id_.stamp[1];
}

void Heap::make_segment() {
  if (config().segments != SegmentChoice::shm) {
    id_.descriptor = memfd_create("ferry", MFD_CLOEXEC);
    if (id_.descriptor >= 0) return;
    if (config().segments == SegmentChoice::memfd) fail("memfd_create", errno);
  }
  // Without a name for now. It will be a random one that nobody can have prepared.
  id_.descriptor = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (id_.descriptor < 0) fail("open in /dev/shm", errno);
  const std::string name = fmt::format("/ferry-{:016x}", id_.stamp[0]);
  std::strncpy(id_.shm_name, name.c_str(), sizeof id_.shm_name - 1);
}

void Heap::map_range() {
  const std::uint64_t wanted = config().heap_max == 0 ? physical_memory() : config().heap_max;
  for (id_.bytes = round_up(wanted); base_ == nullptr; id_.bytes = round_up(id_.bytes / 2)) {
    if (ftruncate(id_.descriptor, static_cast<off_t>(id_.bytes)) != 0) fail("ftruncate", errno);
    void* memory = mmap(
        nullptr, id_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, id_.descriptor, 0);
    if (memory != MAP_FAILED) {
      base_ = static_cast<std::byte*>(memory);
      return;
    }
    if (id_.bytes <= kSmallestRange)
      fail("mmap", errno); // an address space limit, halve until then
  }
}

void Heap::reserve(std::uint64_t offset, std::uint64_t bytes) {
  const int error =
      posix_fallocate(id_.descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (error == 0) return;
  std::string free = "unknown";
  struct statvfs room {};
  if (id_.shm_name[0] != 0 && fstatvfs(id_.descriptor, &room) == 0) {
    free = fmt::format("{}", static_cast<std::uint64_t>(room.f_bavail) * room.f_bsize);
  }
  const char* where = id_.shm_name[0] != 0 ? "/dev/shm" : "shared memory of the kernel";
  throw Failure(
      ErrorKind::no_memory,
      fmt::format(
          "no space in {}: need {} bytes, have {} ({})", where, bytes, free, std::strerror(error)),
      id_.shm_name[0] != 0 ? "enlarge /dev/shm or set FERRY_SEGMENTS=memfd"
                           : "use less memory or raise the memory limit of the job");
}

void Heap::fail(const std::string& what, int error) const {
  throw Failure(
      ErrorKind::no_memory,
      fmt::format("cannot make shared memory: {} failed: {}", what, std::strerror(error)),
      "see ferry-info for what this machine allows; FERRY_SEGMENTS picks another kind");
}

void* Heap::allocate(std::size_t bytes) {
  const std::uint64_t need = round_up(std::max<std::uint64_t>(bytes, 1));
  const std::unique_lock lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < need || bytes > need) continue;
    const auto [offset, room] = *it;
    reserve(offset, need);
    free_.erase(it);
    if (room > need) free_[offset + need] = room - need;
    live_[offset] = need;
    return base_ + offset;
  }
  throw Failure(
      ErrorKind::no_memory,
      fmt::format("{} bytes do not fit into the shared heap of {} bytes", bytes, id_.bytes),
      "raise FERRY_HEAP_MAX");
}

bool Heap::release(void* pointer) {
  const std::unique_lock lock(mutex_);
  const auto* place = static_cast<std::byte*>(pointer);
  if (place <= base_ || place >= base_ + id_.bytes) return false;
  const auto found = live_.find(static_cast<std::uint64_t>(place - base_));
  if (found == live_.end()) return false;
  auto [offset, bytes] = *found;
  live_.erase(found);
  fallocate(
      id_.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
      static_cast<off_t>(bytes));
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return true;
    }
  }
  free_[offset] = bytes;
  return true;
}

std::optional<std::uint64_t> Heap::offset_of(const void* pointer, std::uint64_t bytes) const {
  const auto* place = static_cast<const std::byte*>(pointer);
  if (place < base_ || place >= base_ + id_.bytes) return std::nullopt;
  const auto offset = static_cast<std::uint64_t>(place - base_);
  const std::shared_lock lock(mutex_);
  auto it = live_.upper_bound(offset);
  if (it == live_.begin()) return std::nullopt;
  --it;
  const std::uint64_t inside = offset - it->first;
  if (inside > it->second || bytes > it->second - inside) return std::nullopt;
  return offset;
}

void Heap::announce_name() {
  const std::unique_lock lock(mutex_);
  if (id_.shm_name[0] == 0 || announced_) return;
  announced_ = true;
  const std::string self = fmt::format("/proc/self/fd/{}", id_.descriptor);
  const std::string name = std::string("/dev/shm") + id_.shm_name;
  // Fails when the name exists, so no link is followed and no old file is taken.
  if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    fail("link in /dev/shm", errno);
  }
}

void Heap::forget_name() noexcept {
  const std::unique_lock lock(mutex_);
  if (announced_) shm_unlink(id_.shm_name);
}

} // namespace ferry::core
