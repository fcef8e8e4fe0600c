// SPDX-License-Identifier: MIT
#include <string_view>

#include "lib/amd/kernels/kernels.hpp"

namespace ferry::amd {

const CodeObject* code_object_for(const char* device_name) {
  const std::string_view name(device_name);
  const std::string_view processor = name.substr(0, name.find(':'));
  const CodeObjects all = code_objects();
  for (std::size_t i = 0; i < all.count; ++i) {
    if (processor == all.first[i].processor) return all.first + i;
  }
  return nullptr;
}

} // namespace ferry::amd
