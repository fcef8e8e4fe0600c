// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/stolen.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace ferry::tune {
namespace {

constexpr double kGap = 50e-6; // longer than any interrupt of an idle machine

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Looks at the clock all the time, and sums up when it could not.
double spin(double seconds) {
  const double start = seconds_now();
  double lost = 0;
  for (double last = start; last - start < seconds;) {
    const double now = seconds_now();
    if (now - last > kGap) lost += now - last;
    last = now;
  }
  return lost / (seconds_now() - start);
}

} // namespace

double stolen_share(double seconds) {
  std::vector<double> shares(std::thread::hardware_concurrency() > 1 ? 2 : 1);
  {
    std::vector<std::jthread> crew;
    for (double& share : shares) {
      crew.emplace_back([&share, seconds] { share = spin(seconds); });
    }
  }
  return *std::max_element(shares.begin(), shares.end());
}

} // namespace ferry::tune
