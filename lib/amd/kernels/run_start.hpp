// SPDX-License-Identifier: MIT
#pragma once

// What the kernel ferry_start does, for the device and for models of it.

#include "device/kernel.hpp"
#include "device/platform.hpp"
#include "device/start.hpp"
#include "lib/amd/kernels/kernels.hpp"

namespace ferry::amd {

// By one lane. A plan that has failed is not started any more.
template <class Backoff>
FERRY_DEVICE_FN void run_start(const StartArgs& args, const Backoff& patience) {
  const bool over = device::load_relaxed(&args.report->waits.stop) != 0;
  const bool ended = !over && device::start(args.handle, args.number) &&
                     device::wait_start(args.handle, args.number, patience);
  const auto status = ended ? device::PutStatus::done : device::PutStatus::timed_out;
  device::detail::report_failure(&args.report->waits, status, 0, args.launch);
  device::store_release(&args.report->ended, args.launch); // the host may free what it used
}

} // namespace ferry::amd
