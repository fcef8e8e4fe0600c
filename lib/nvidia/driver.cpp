// SPDX-License-Identifier: MIT
#include "lib/nvidia/driver.hpp"

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

namespace {

constexpr unsigned kVersion = 12000; // of the driver's interface, what all calls below have

template <class Call>
void look_up(Driver& found, Call& call, const char* name) {
  if (!found.missing.empty()) return;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &entry, kVersion, cudaEnableDefault, &result);
  if (code != cudaSuccess) {
    found.missing = fmt::format("no usable driver ({})", cudaGetErrorString(code));
  } else if (result != cudaDriverEntryPointSuccess || entry == nullptr) {
    found.missing = fmt::format("the driver has no {}", name);
  }
  call = reinterpret_cast<Call>(entry);
}

Driver look_up_all() {
  Driver d;
  look_up(d, d.init, "cuInit");
  look_up(d, d.error_name, "cuGetErrorName");
  look_up(d, d.pointer_attribute, "cuPointerGetAttribute");
  look_up(d, d.address_range, "cuMemGetAddressRange");
  look_up(d, d.write_value, "cuStreamWriteValue64");
  look_up(d, d.wait_value, "cuStreamWaitValue64");
  look_up(d, d.batch, "cuStreamBatchMemOp");
  look_up(d, d.fill, "cuMemsetD32Async");
  look_up(d, d.copy, "cuMemcpyAsync");
  look_up(d, d.uuid, "cuDeviceGetUuid");
  look_up(d, d.retain_handle, "cuMemRetainAllocationHandle");
  look_up(d, d.export_handle, "cuMemExportToShareableHandle");
  look_up(d, d.import_handle, "cuMemImportFromShareableHandle");
  look_up(d, d.reserve, "cuMemAddressReserve");
  look_up(d, d.unreserve, "cuMemAddressFree");
  look_up(d, d.map, "cuMemMap");
  look_up(d, d.unmap, "cuMemUnmap");
  look_up(d, d.set_access, "cuMemSetAccess");
  look_up(d, d.release, "cuMemRelease");
  return d;
}

} // namespace

const Driver& driver() {
  static const Driver found = look_up_all();
  return found;
}

std::string driver_text(int code) {
  const char* name = nullptr;
  const Driver& d = driver();
  if (d.error_name != nullptr) d.error_name(static_cast<CUresult>(code), &name);
  return name != nullptr ? name : fmt::format("error {}", code);
}

void check_driver(int code, const char* call) {
  if (code == CUDA_SUCCESS) return;
  throw core::Failure(core::ErrorKind::other, fmt::format("{}: {}", call, driver_text(code)));
}

void check_runtime(int code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError(); // not left behind for somebody else's check
  const auto error = static_cast<cudaError_t>(code);
  const auto kind =
      error == cudaErrorMemoryAllocation ? core::ErrorKind::no_memory : core::ErrorKind::other;
  throw core::Failure(kind, fmt::format("{}: {}", call, cudaGetErrorString(error)));
}

} // namespace ferry::nvidia
