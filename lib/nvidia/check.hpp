// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "lib/nvidia/handles.hpp"

namespace ferry::nvidia {

// Throws Failure naming the call and the runtime's text unless code is success.
void check_runtime(int code, const char* call);
// The same for a CUresult.
void check_driver(int code, const char* call);
[[nodiscard]] std::string driver_text(int code);

} // namespace ferry::nvidia
