// SPDX-License-Identifier: MIT
#pragma once

namespace ferry::tune {

// The share of the time, 0 to 1, in which other programs had the cores that a pair of ranks needs.
[[nodiscard]] double stolen_share(double seconds);

} // namespace ferry::tune
