// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <string>

namespace ferry::nvidia {

// Calls that only the driver has, looked up through the runtime: nothing links libcuda, so that the
// module loads, and says why it cannot run, on a machine without a driver.
struct Driver {
  decltype(&cuInit) init = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuPointerGetAttribute) pointer_attribute = nullptr;
  decltype(&cuMemGetAddressRange) address_range = nullptr;
  decltype(&cuStreamWriteValue64) write_value = nullptr;
  decltype(&cuStreamWaitValue64) wait_value = nullptr;
  decltype(&cuStreamBatchMemOp) batch = nullptr;
  decltype(&cuMemsetD32Async) fill = nullptr;
  decltype(&cuMemcpyAsync) copy = nullptr; // less on the way than the runtime's
  decltype(&cuDeviceGetUuid) uuid = nullptr;
  decltype(&cuMemRetainAllocationHandle) retain_handle = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  std::string missing; // why it cannot be used; empty: everything is there
};

// The driver of this process, looked up once.
[[nodiscard]] const Driver& driver();

} // namespace ferry::nvidia

#endif
