// SPDX-License-Identifier: MIT
// What the library uses of HIP but for kernels, on the modelled runtime, and what that reports and
// counts.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "tests/amd/fake/rocr.hpp"

namespace ferry::test {
namespace {

std::atomic<std::size_t> host_functions_on_streams{0};

} // namespace

// By a thread of the driver's engines, page by page as the hardware tells it.
void FakeRocr::report(int node, std::uint64_t address) {
  constexpr std::uint64_t kPage = 4096;
  amd::hsa::Event event;
  event.type = amd::hsa::kMemoryFault;
  event.agent = agent_of(node);
  event.address = address / kPage * kPage;
  const std::lock_guard lock(mutex_);
  bool claimed = false;
  for (const auto& [listener, data] : listeners_) claimed |= listener(&event, data) == 0;
  unclaimed_ += claimed ? 0 : 1;
}

void FakeRocr::lose_mappings(std::size_t longer_than) {
  std::vector<Record> lost;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [at, record] : records_) {
      if (record.imported && record.bytes > longer_than) lost.push_back(record);
    }
  }
  for (const Record& record : lost) kernel_.lose(record.base, record.node);
}

std::size_t FakeRocr::unclaimed() {
  const std::lock_guard lock(mutex_);
  return unclaimed_;
}

std::size_t FakeRocr::allocations() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      records_.begin(), records_.end(), [](const auto& entry) { return !entry.second.imported; }));
}

std::size_t FakeRocr::attached() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      records_.begin(), records_.end(), [](const auto& entry) { return entry.second.imported; }));
}

std::set<std::uint32_t> FakeRocr::masks_used() {
  const std::lock_guard lock(mutex_);
  return masks_used_;
}

std::size_t FakeRocr::attachments() {
  const std::lock_guard lock(mutex_);
  return attachments_;
}

struct HipFunctions {
  static int pointer_attribute(void* answer, int attribute, void* pointer) {
    const auto record = FakeRocr::of_process().record_of(pointer);
    if (attribute != amd::HipApi::kBufferId || !record || record->id == 0) return 1;
    std::memcpy(answer, &record->id, sizeof record->id);
    return 0;
  }
  static int address_range(void** base, std::size_t* bytes, void* pointer) {
    const auto record = FakeRocr::of_process().record_of(pointer);
    if (!record) return 1;
    *base = record->base;
    *bytes = record->bytes;
    return 0;
  }
  static int is_capturing(void* stream, int* status) {
    *status = static_cast<FakeStream*>(stream)->capturing() ? 1 : 0;
    return 0;
  }
  static int launch_host_function(void* stream, void (*function)(void*), void* data) {
    ++host_functions_on_streams;
    static_cast<FakeStream*>(stream)->push([=] { function(data); });
    return 0;
  }
};

std::size_t FakeRocr::host_functions() {
  return host_functions_on_streams;
}

amd::HipApi FakeRocr::hip() {
  amd::HipApi api;
  api.pointer_attribute = HipFunctions::pointer_attribute;
  api.launch_host_function = HipFunctions::launch_host_function;
  api.is_capturing = HipFunctions::is_capturing;
  api.address_range = HipFunctions::address_range;
  return api;
}

} // namespace ferry::test
