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
inline constexpr PutThreshold kPutThresholds[] = {kSoftwareThreshold, kSdmaThreshold};

} // namespace ferry::device
