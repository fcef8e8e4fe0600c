// SPDX-License-Identifier: MIT
#include "lib/amd/hsa_api.hpp"

#include <dlfcn.h>

namespace ferry::amd {
namespace {

class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  template <class Function>
  void optional(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
  }
  template <class Function>
  void required(Function& function, const char* name) {
    optional(function, name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  void* handle_;
  const char* missing_ = nullptr;
};

} // namespace

namespace {

void find_vmem(Library& library, VmemApi& vmem) {
  library.optional(vmem.retain, "hsa_amd_vmem_retain_alloc_handle");
  library.optional(vmem.release, "hsa_amd_vmem_handle_release");
  library.optional(vmem.export_file, "hsa_amd_vmem_export_shareable_handle");
  library.optional(vmem.import_file, "hsa_amd_vmem_import_shareable_handle");
  library.optional(vmem.reserve, "hsa_amd_vmem_address_reserve");
  library.optional(vmem.free_range, "hsa_amd_vmem_address_free");
  library.optional(vmem.map, "hsa_amd_vmem_map");
  library.optional(vmem.unmap, "hsa_amd_vmem_unmap");
  library.optional(vmem.set_access, "hsa_amd_vmem_set_access");
}

} // namespace

bool load_hsa(HsaApi& api, std::string& why) {
  void* const handle = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    why = error != nullptr ? error : "libhsa-runtime64.so.1 cannot be loaded";
    return false;
  }
  Library library(handle);
  library.required(api.init, "hsa_init");
  library.required(api.iterate_agents, "hsa_iterate_agents");
  library.required(api.agent_get_info, "hsa_agent_get_info");
  library.required(api.iterate_pools, "hsa_amd_agent_iterate_memory_pools");
  library.required(api.pool_get_info, "hsa_amd_memory_pool_get_info");
  library.required(api.pool_allocate, "hsa_amd_memory_pool_allocate");
  library.required(api.pool_free, "hsa_amd_memory_pool_free");
  library.required(api.allow_access, "hsa_amd_agents_allow_access");
  library.required(api.pointer_info, "hsa_amd_pointer_info");
  library.required(api.ipc_create, "hsa_amd_ipc_memory_create");
  library.required(api.ipc_attach, "hsa_amd_ipc_memory_attach");
  library.required(api.ipc_detach, "hsa_amd_ipc_memory_detach");
  library.required(api.memory_copy, "hsa_memory_copy");
  library.required(api.signal_create, "hsa_signal_create");
  library.required(api.signal_destroy, "hsa_signal_destroy");
  library.required(api.signal_load, "hsa_signal_load_scacquire");
  library.required(api.signal_store, "hsa_signal_store_screlease");
  library.required(api.async_copy, "hsa_amd_memory_async_copy");
  library.optional(api.async_copy_on_engine, "hsa_amd_memory_async_copy_on_engine");
  library.optional(api.preferred_engines, "hsa_amd_memory_get_preferred_copy_engine");
  library.optional(api.free_engines, "hsa_amd_memory_copy_engine_status");
  library.optional(api.on_event, "hsa_amd_register_system_event_handler");
  find_vmem(library, api.vmem);
  if (library.missing() == nullptr) return true;
  why = std::string("libhsa-runtime64.so.1 has no ") + library.missing();
  return false;
}

namespace {

void find_modules(Library& library, HipModules& modules) {
  library.optional(modules.get_device, "hipGetDevice");
  library.optional(modules.set_device, "hipSetDevice");
  library.optional(modules.device_by_bus_address, "hipDeviceGetByPCIBusId");
  library.optional(modules.load, "hipModuleLoadData");
  library.optional(modules.function, "hipModuleGetFunction");
  library.optional(modules.launch, "hipModuleLaunchKernel");
  library.optional(modules.stream_create, "hipStreamCreateWithFlags");
  library.optional(modules.stream_destroy, "hipStreamDestroy");
  library.optional(modules.stream_query, "hipStreamQuery");
  library.optional(modules.host_malloc, "hipHostMalloc");
  library.optional(modules.host_free, "hipHostFree");
}

} // namespace

HipApi find_hip() {
  HipApi api;
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    void* const handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    Library library(handle);
    library.optional(api.pointer_attribute, "hipPointerGetAttribute");
    library.optional(api.launch_host_function, "hipLaunchHostFunc");
    library.optional(api.is_capturing, "hipStreamIsCapturing");
    library.optional(api.address_range, "hipMemGetAddressRange");
    find_modules(library, api.modules);
    break;
  }
  return api;
}

} // namespace ferry::amd
