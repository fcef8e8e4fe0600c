// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace ferry::bench {

// Throws std::runtime_error when there is none: better before a long run than behind it.
void require_gnuplot();

// Draws time over size: Ferry, each peer, and the limit, out of an array of results as --json
// writes it. file ends in .svg or .png. Throws std::runtime_error, also without gnuplot.
void draw_results(const std::string& json, const std::string& file);

// What gnuplot is told. Throws std::runtime_error when json is no array of results.
[[nodiscard]] std::string plot_script(const std::string& json, const std::string& file);

} // namespace ferry::bench
