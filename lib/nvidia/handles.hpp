// SPDX-License-Identifier: MIT
#pragma once

// The runtime's handles by name only, so that headers of this folder compile where no CUDA is.

struct CUstream_st;
struct CUevent_st;
using hipStream_t = CUstream_st*;
using hipEvent_t = CUevent_st*;
