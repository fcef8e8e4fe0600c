// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/runner.hpp"

namespace ferry::bench {
namespace {

constexpr int kCheckedCalls = 4;

} // namespace

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

void Runner::time(Result& result, const Contender& ferry, const std::optional<Contender>& peer) {
  std::optional<Contender> limit;
  if (options_.limit) limit = make_limit(buffers_);
  std::vector<const Contender*> contenders = {&ferry};
  if (peer) contenders.push_back(&*peer);
  if (limit) contenders.push_back(&*limit);
  Stopwatch stopwatch(options_, crew_, buffers_.block_bytes());
  const std::vector<Times> times = stopwatch.run(contenders);
  result.rounds = stopwatch.rounds();
  result.ferry = times.front();
  if (peer) result.peer = times[1];
  if (limit) result.limit = times.back();
}

} // namespace ferry::bench
