// SPDX-License-Identifier: MIT

// What the device compiler makes of the compute path: one kernel for each exchange of device/, and
// two for what a host cannot do in their place. Their arguments stand in kernels.hpp.

#include <cstdint>

#include "device/low_latency.hpp"
#include "device/put.hpp"
#include "device/ring.hpp"
#include "device/wide_exchange.hpp"
#include "lib/amd/kernels/kernels.hpp"
#include "lib/amd/kernels/run_start.hpp"

namespace {

using namespace ferry::device;
using namespace ferry::amd;

// Gives up by the clock of the device, which runs at the same rate on all its compute units, or
// when the host says so. That word is far away, and looked at now and then.
class Deadline {
 public:
  FERRY_DEVICE_FN explicit Deadline(std::uint64_t ticks, const std::uint64_t* stop = nullptr)
      : end_(now() + ticks), stop_(stop) {}
  FERRY_DEVICE_FN bool operator()() {
    cpu_relax();
    if (++looks_ % kLooks == 0 && stop_ != nullptr && load_relaxed(stop_) != 0) return false;
    return static_cast<std::int64_t>(end_ - now()) > 0;
  }

 private:
  static constexpr std::uint32_t kLooks = 1024;
  FERRY_DEVICE_FN static std::uint64_t now() {
#if defined(__HIP_DEVICE_COMPILE__)
    return __builtin_amdgcn_s_memrealtime();
#else
    return 0;
#endif
  }
  std::uint64_t end_;
  const std::uint64_t* stop_;
  std::uint32_t looks_ = 0;
};

FERRY_DEVICE_FN const std::uint64_t* stop_word(const KernelReport* report) {
  return report != nullptr ? &report->stop : nullptr;
}

} // namespace

#define FERRY_KERNEL extern "C" __attribute__((global)) void
#define FERRY_LANES __attribute__((amdgpu_flat_work_group_size(1, ferry::amd::kMaxLanes)))

FERRY_KERNEL FERRY_LANES ferry_low_latency(LowLatencyArgs args) {
  run_low_latency(
      args, Deadline(args.patience, stop_word(args.report)), detail::place_in_grid(), Workgroup{});
}

FERRY_KERNEL FERRY_LANES ferry_wide(WideArgs args) {
  run_wide(
      args, Deadline(args.patience, stop_word(args.report)), detail::place_in_grid(), Workgroup{});
}

// One lane. Starts a plan on copy engines that was programmed ahead, and waits for its end: a start
// on a stream, for what comes behind it there.
FERRY_KERNEL FERRY_LANES ferry_start(StartArgs args) {
  run_start(args, Deadline(args.patience, stop_word(&args.report->waits)));
}

// One lane. Posts a put from the device and waits for its signal: how a self-test tries rings.
FERRY_KERNEL FERRY_LANES ferry_put_signal(PutSignalArgs args) {
  const SingleProducer queue(args.ring);
  PutResult posted =
      put_signal(queue, args.to, args.from, args.bytes, args.signal, args.expected_step);
  if (posted.status == PutStatus::done &&
      !wait_signal(args.signal, args.expected, Deadline(args.patience))) {
    posted.status = PutStatus::timed_out;
  }
  store_relaxed(&args.result->ticket, posted.ticket);
  store_release(&args.result->status, static_cast<std::uint64_t>(posted.status) + 1);
}
