// SPDX-License-Identifier: MIT
#pragma once

// The part of HIP that launches kernels, with own prototypes, looked up like the rest.

#include <cstddef>

namespace ferry::amd {

struct HipModules {
  int (*get_device)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*device_by_bus_address)(int*, const char*) = nullptr;
  int (*load)(void** module, const void* image) = nullptr;
  int (*function)(void** function, void* module, const char* name) = nullptr;
  int (*launch)(
      void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
      unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
      void** extra) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*stream_query)(void* stream) = nullptr;
  int (*host_malloc)(void** memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*host_free)(void* memory) = nullptr;

  static constexpr int kNotReady = 600; // of stream_query
  static constexpr unsigned kNonBlocking = 1; // of stream_create

  [[nodiscard]] bool complete() const {
    return get_device != nullptr && set_device != nullptr && device_by_bus_address != nullptr &&
           load != nullptr && function != nullptr && launch != nullptr &&
           stream_create != nullptr && stream_destroy != nullptr && stream_query != nullptr &&
           host_malloc != nullptr && host_free != nullptr;
  }
};

} // namespace ferry::amd
