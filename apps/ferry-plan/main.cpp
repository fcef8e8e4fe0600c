// SPDX-License-Identifier: MIT
// ferry-plan: the plan of a collective without a job. Prints the steps of a rank, verifies the
// plans of all ranks, and tells how long a job of any number of ranks takes by the costs of its
// steps.
#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "apps/ferry-bench/options.hpp"
#include "costs.hpp"
#include "lib/exec/lane.hpp"
#include "lib/schedule/simulate.hpp"

namespace {

namespace po = boost::program_options;
using namespace ferry::core;
using Clock = std::chrono::steady_clock;

constexpr int kUsageError = 2;
constexpr int kMostRanks = 10'000'000;
// Beyond these, plans that are alike but for the rank stand for each other.
constexpr int kWholeRanks = 8192;

struct Request {
  PlanInput input;
  std::vector<BufferFacts> facts;
  bool verify = false;
  bool simulate = false;
  bool engines = false;
  std::string costs;

  Schedule plan(int rank) const {
    PlanInput of = input;
    of.rank = rank;
    of.facts = facts;
    return plan_collective(of);
  }
};

po::options_description describe() {
  po::options_description all("Options");
  all.add_options() //
      ("ranks,n", po::value<int>()->default_value(4), "ranks that share memory") //
      ("bytes", po::value<std::string>()->default_value("8"),
       "a block (broadcast: the message); suffixes K, M, G") //
      ("rank", po::value<int>()->default_value(0), "whose steps are printed") //
      ("root", po::value<int>()->default_value(0), "of a broadcast") //
      ("memory", po::value<std::string>()->default_value("shared"),
       "of all buffers: shared (mapped by all) or private") //
      ("in-place", "MPI_IN_PLACE on all ranks") //
      ("verify",
       "run the plans of all ranks on symbolic memory instead: what is wrong, if anything") //
      ("simulate", "instead, tell how long all ranks take, by the costs of their steps") //
      ("costs", po::value<std::string>()->default_value(""),
       "nanoseconds copy,byte,signal,flight,await: to begin a copy, for a byte of it, to store a "
       "flag, until it is seen, to look; without it they are measured here") //
      ("engines", "each queue has a copy engine of its own; without it one thread runs all") //
      ("version", "the version of Ferry") //
      ("help", "this text");
  return all;
}

Operation operation_of(const std::string& name) {
  const std::map<std::string, Operation> known = {
      {"alltoall", Operation::alltoall},
      {"allgather", Operation::allgather},
      {"bcast", Operation::broadcast},
      {"barrier", Operation::barrier}};
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  throw std::invalid_argument(
      "the collective is one of alltoall, allgather, bcast, barrier, not '" + name + "'");
}

int within(const po::variables_map& given, const char* name, int least, int most) {
  const int value = given[name].as<int>();
  if (value >= least && value <= most) return value;
  throw std::invalid_argument(
      fmt::format("--{} {} is not from {} to {}", name, value, least, most));
}

Request understand(const po::variables_map& given) {
  Request request;
  PlanInput& input = request.input;
  input.operation = operation_of(given["collective"].as<std::string>());
  input.ranks = within(given, "ranks", 1, kMostRanks);
  input.rank = within(given, "rank", 0, input.ranks - 1);
  input.root = within(given, "root", 0, input.ranks - 1);
  input.in_place = given.count("in-place") > 0;
  const bool has_blocks =
      input.operation == Operation::alltoall || input.operation == Operation::allgather;
  if (input.in_place && !has_blocks) {
    throw std::invalid_argument("--in-place goes with alltoall and allgather only");
  }
  input.block_bytes = input.operation == Operation::barrier
                          ? 0
                          : ferry::bench::parse_size(given["bytes"].as<std::string>(), "--bytes");
  input.limits = plan_limits(config(), input.ranks, false);
  const std::string memory = given["memory"].as<std::string>();
  const bool mapped = memory == "shared";
  if (!mapped && memory != "private") {
    throw std::invalid_argument("--memory is shared or private, not '" + memory + "'");
  }
  request.facts.assign(static_cast<std::size_t>(input.ranks), {mapped, mapped, true, true});
  request.verify = given.count("verify") > 0;
  request.simulate = given.count("simulate") > 0;
  if (request.verify && request.simulate) {
    throw std::invalid_argument("--verify and --simulate exclude each other");
  }
  request.engines = given.count("engines") > 0;
  request.costs = given["costs"].as<std::string>();
  if (!request.simulate && (request.engines || !request.costs.empty())) {
    throw std::invalid_argument("--engines and --costs go with --simulate only");
  }
  return request;
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::size_t count_steps(const Schedule& schedule) {
  std::size_t steps = 0;
  for (const StepQueue& queue : schedule.queues) steps += queue.steps.size();
  return steps;
}

void print_plan(const Request& request) {
  fmt::print("{}\n", print(request.plan(request.input.rank)));
}

int verify_job(const Request& request) {
  const auto start = Clock::now();
  std::vector<Schedule> job;
  std::size_t steps = 0;
  for (int rank = 0; rank < request.input.ranks; ++rank) {
    job.push_back(request.plan(rank));
    steps += count_steps(job.back());
  }
  const double planned = since(start);
  const PlanInput& input = request.input;
  const std::string fault =
      verify(job, {input.in_place, input.root, input.block_bytes, input.handshake, {}}, 1);
  fmt::print(
      "{} ranks, {} steps: planned in {:.4f} s, verified in {:.3f} s\n", input.ranks, steps,
      planned, since(start) - planned);
  fmt::print("{}\n", fault.empty() ? "nothing is wrong" : fault);
  return fault.empty() ? 0 : 1;
}

int simulate_job(const Request& request) {
  const PlanInput& input = request.input;
  const auto begun = Clock::now();
  const Schedule one = request.plan(0);
  fmt::print(
      "plan of a rank: {} steps, made in {:.3f} ms: {}\n", count_steps(one), since(begun) * 1000,
      one.why);
  SimulateInput question;
  question.ranks = input.ranks;
  question.plan = [&](int rank) { return request.plan(rank); };
  question.costs = request.costs.empty() ? ferry::plan::measure_costs(input.block_bytes)
                                         : ferry::plan::parse_costs(request.costs);
  question.one_thread = !request.engines;
  question.symmetric = input.operation != Operation::broadcast && input.ranks > kWholeRanks;
  const StepCosts& costs = question.costs;
  fmt::print(
      "costs in ns ({}): copy {:.2f}, byte {:.4f}, signal {:.2f}, flight {:.1f}, await {:.2f}\n",
      request.costs.empty() ? "measured here" : "given", costs.copy, costs.byte, costs.signal,
      costs.flight, costs.await);
  const auto start = Clock::now();
  const Simulation result = simulate(question);
  fmt::print(
      "simulated {} in {:.3f} s: {} steps, {} bytes copied, {} plans\n",
      question.symmetric ? "rank 0, whose plan is everybody's," : "all ranks", since(start),
      result.steps, result.bytes, result.plans);
  if (!result.fault.empty()) {
    fmt::print("{}\n", result.fault);
    return 1;
  }
  fmt::print("{} ranks take {:.3f} us", input.ranks, result.ns / 1000);
  fmt::print("{}\n", question.symmetric ? "" : fmt::format(", rank {} leaves last", result.last));
  return 0;
}

int run(int argc, char** argv) {
  const po::options_description all = describe();
  po::options_description hidden;
  hidden.add(all).add_options()("collective", po::value<std::string>()->default_value("alltoall"));
  po::variables_map given;
  po::store(
      po::command_line_parser(argc, argv)
          .options(hidden)
          .positional(po::positional_options_description().add("collective", 1))
          .run(),
      given);
  if (given.count("help") > 0) {
    fmt::print("Usage: ferry-plan [alltoall|allgather|bcast|barrier] [OPTION...]\n");
    std::ostringstream text;
    text << all;
    return std::fputs(text.str().c_str(), stdout) < 0;
  }
  if (given.count("version") > 0) {
    fmt::print("ferry {}.{}.{}\n", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR, FERRY_VERSION_PATCH);
    return 0;
  }
  po::notify(given);
  const Request request = understand(given);
  if (request.verify) return verify_job(request);
  if (request.simulate) return simulate_job(request);
  print_plan(request);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    return std::fflush(stdout) == 0 ? code : 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "ferry-plan: out of memory; ask for fewer ranks\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ferry-plan: %s; see ferry-plan --help\n", error.what());
    return kUsageError;
  }
}
