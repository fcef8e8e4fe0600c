// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/runner.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ferry::bench {
namespace {

constexpr int kCheckedCalls = 4;
constexpr int kFewestRounds = 3;
constexpr int kCalibrationSteps = 8;
constexpr double kSecondsPerSize = 2.0;

// Long enough that the clock and the start of a round do not count; from 2 MiB on, where caches and
// page tables matter, long enough to average over them.
constexpr std::uint64_t kLargeBytes = std::uint64_t{2} << 20;
constexpr double kSmallRoundSeconds = 1e-3;
constexpr double kLargeRoundSeconds = 50e-3;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<double> per_call(std::vector<double> rounds, std::int64_t calls) {
  for (double& seconds : rounds) seconds /= static_cast<double>(calls);
  return rounds;
}

} // namespace

Times summarize(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  const std::size_t middle = rounds.size() / 2;
  const bool odd = rounds.size() % 2 == 1;
  return {rounds.front(), odd ? rounds[middle] : (rounds[middle - 1] + rounds[middle]) / 2};
}

Runner::Runner(const Options& options, MPI_Comm comm, const Crew& crew)
    : options_(options), comm_(comm), crew_(crew), buffers_(options, crew.rank(), crew.size()) {}

Result Runner::measure(std::uint64_t block_bytes) {
  buffers_.resize(block_bytes);
  buffers_.prepare(++iteration_);
  const Contender ferry = make_ferry(options_, buffers_, comm_);
  std::optional<Contender> peer;
  if (options_.peer) peer = make_peer(options_, buffers_, comm_);

  Result result;
  result.bytes = block_bytes;
  if (options_.check) result.errors = count_wrong(ferry);
  if (options_.check && peer) result.peer_errors = count_wrong(*peer);
  const std::string text = ferry.explain();
  const auto colon = text.find(": ");
  result.path = text.substr(0, colon);
  if (colon != std::string::npos) result.why = text.substr(colon + 2);
  time(result, ferry, peer);
  if (options_.check) *result.errors += count_wrong(ferry);
  if (options_.check && peer) *result.peer_errors += count_wrong(*peer);
  return result;
}

// No barrier between the calls: a rank that is ahead refills its buffers while others still work,
// which only a collective that gives them back too early would mind.
std::uint64_t Runner::count_wrong(const Contender& contender) {
  std::uint64_t wrong = 0;
  for (int i = 0; i < kCheckedCalls; ++i) {
    buffers_.prepare(++iteration_);
    contender.call();
    wrong += buffers_.count_wrong(iteration_);
  }
  return crew_.sum(wrong);
}

double Runner::time_round(const Contender& contender, std::int64_t calls) const {
  crew_.barrier();
  const double start = seconds_now();
  for (std::int64_t i = 0; i < calls; ++i) contender.call();
  const double seconds = seconds_now() - start;
  crew_.barrier();
  return seconds;
}

Runner::Pace Runner::calibrate(const Contender& contender) const {
  const bool large = buffers_.block_bytes() >= kLargeBytes;
  const double target = large ? kLargeRoundSeconds : kSmallRoundSeconds;
  contender.call();
  Pace pace;
  for (int step = 0; step < kCalibrationSteps; ++step) {
    pace.seconds = time_round(contender, pace.calls);
    crew_.maximum({&pace.seconds, 1});
    if (pace.seconds >= target) break;
    const double growth = std::clamp(1.2 * target / std::max(pace.seconds, 1e-9), 2.0, 100.0);
    const auto calls = static_cast<std::int64_t>(static_cast<double>(pace.calls) * growth);
    pace.seconds *= static_cast<double>(calls) / static_cast<double>(pace.calls);
    pace.calls = calls;
  }
  return pace;
}

int Runner::choose_rounds(const Pace& ferry, const Pace& peer) const {
  if (options_.rounds) return *options_.rounds;
  const double affordable = kSecondsPerSize / (ferry.seconds + peer.seconds);
  if (affordable >= kDefaultRounds) return kDefaultRounds;
  return std::max(kFewestRounds, static_cast<int>(affordable));
}

void Runner::time(
    Result& result, const Contender& ferry, const std::optional<Contender>& peer) const {
  const Pace ferry_pace = calibrate(ferry);
  const Pace peer_pace = peer ? calibrate(*peer) : Pace{};
  result.rounds = choose_rounds(ferry_pace, peer_pace);
  std::vector<double> ferry_rounds;
  std::vector<double> peer_rounds;
  const auto run_ferry = [&] { ferry_rounds.push_back(time_round(ferry, ferry_pace.calls)); };
  const auto run_peer = [&] {
    if (peer) peer_rounds.push_back(time_round(*peer, peer_pace.calls));
  };
  // In turns, and each goes first as often as the other: what disturbs the machine disturbs both.
  for (int round = 0; round < result.rounds; ++round) {
    if (round % 2 == 0) {
      run_ferry();
      run_peer();
    } else {
      run_peer();
      run_ferry();
    }
  }
  crew_.maximum(ferry_rounds);
  result.ferry = summarize(per_call(std::move(ferry_rounds), ferry_pace.calls));
  if (!peer) return;
  crew_.maximum(peer_rounds);
  result.peer = summarize(per_call(std::move(peer_rounds), peer_pace.calls));
}

} // namespace ferry::bench
