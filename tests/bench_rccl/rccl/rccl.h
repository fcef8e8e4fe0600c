// SPDX-License-Identifier: MIT
// What ferry-bench uses of RCCL, declared and nowhere defined.
#pragma once

#include <cstddef>

#include <hip/hip_runtime_api.h>

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t { ncclSuccess = 0 };
enum ncclDataType_t { ncclInt8 = 0 };

extern "C" {
const char* ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetVersion(int*);
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclAllToAll(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, hipStream_t);
ncclResult_t ncclAllGather(
    const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, hipStream_t);
ncclResult_t ncclBroadcast(
    const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t, hipStream_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t, hipStream_t);
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t, hipStream_t);
}
