// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ferry::device {

// Below how many bytes a put goes by load/store instead of a packet, for each kind of engine. Start
// values of TeamHandle::threshold; how each was come by stands beside it.
struct PutThreshold {
  const char* engine;
  std::uint64_t bytes;
  const char* source;
};

inline constexpr PutThreshold kSoftwareThreshold{
    "software", 2048,
    "2 cores of an Intel Xeon, November 2026: posting and ringing take 26 ns (37.8 M packets/s, "
    "spread "
    "32.8 to 39.5), as long as a copy of about 2 KiB within the caches"};
inline constexpr PutThreshold kSdmaThreshold{
    "sdma", 256, "not measured here: the documented default of rocSHMEM for AMD Instinct"};
// Posted by one thread, so that wider scopes gain more.
inline constexpr PutThreshold kProxyThreshold{
    "proxy", 1024,
    "two ranks on one NVIDIA H200, December 2026, a put and the wait for that of the peer, by "
    "store and by the proxy: 4.2 and 19.5 us at 64 bytes, 35.3 and 43.1 at 1 KiB, 68.2 and 70.0 "
    "at 2 KiB, 134 and 123 at 4 KiB; on two GPUs the proxy takes 5 us less"};
inline constexpr PutThreshold kPutThresholds[] = {
    kSoftwareThreshold, kSdmaThreshold, kProxyThreshold};

} // namespace ferry::device
