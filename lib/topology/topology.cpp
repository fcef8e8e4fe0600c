// SPDX-License-Identifier: MIT
#include "lib/topology/topology.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "lib/base/error.hpp"
#include "lib/topology/launcher.hpp"

namespace ferry::core {
namespace {

std::uint64_t boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return std::hash<std::string>{}(id);
}

void fill_cpus(std::uint64_t (&cpus)[16]) {
  cpu_set_t set;
  CPU_ZERO(&set);
  static_assert(sizeof set == sizeof cpus);
  if (sched_getaffinity(0, sizeof set, &set) == 0) std::memcpy(cpus, &set, sizeof cpus);
}

// State letter and start time: fields 3 and 22, counted behind the name, which may hold anything.
bool read_stat(int pid, char* state, std::uint64_t* start_time) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return false;
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  fields >> *state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> *start_time;
  return static_cast<bool>(fields);
}

// Variables that may differ from rank to rank without harm.
Config layout_part(Config config) {
  const Config neutral;
  config.heap_max = neutral.heap_max;
  config.spin = neutral.spin;
  config.table = neutral.table; // what is in it counts, see RankCard::table
  config.warn_after = neutral.warn_after;
  config.timeout = neutral.timeout;
  config.verbose = neutral.verbose;
  config.engine_threads = neutral.engine_threads;
  return config;
}

} // namespace

RankCard describe_rank(const Config& config) {
  RankCard card;
  card.config = config;
  card.pid = getpid();
  card.start_time = start_time_of(card.pid);
  card.boot_id = boot_id();
  card.ranks_on_node = launched_on_node(launcher_variable);
  fill_cpus(card.cpus);
  return card;
}

void count_cores(const std::vector<RankCard>& cards, const RankCard& mine, Topology& topology) {
  std::uint64_t cpus[16] = {};
  int ranks = 0;
  for (const RankCard& card : cards) {
    if (card.boot_id != mine.boot_id) continue;
    for (std::size_t i = 0; i < std::size(cpus); ++i) cpus[i] |= card.cpus[i];
    ++ranks;
  }
  ranks = std::max(ranks, mine.ranks_on_node);
  topology.cores = 0;
  for (std::uint64_t word : cpus) topology.cores += std::popcount(word);
  topology.oversubscribed = ranks > topology.cores;
}

void require_equal_configuration(const std::vector<RankCard>& cards) {
  const Config first = layout_part(cards.front().config);
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    const char* variable = differing_variable(first, layout_part(cards[rank].config));
    if (variable == nullptr && cards[rank].table == cards.front().table) continue;
    if (variable == nullptr) variable = "the table (FERRY_TABLE)";
    throw Failure(
        ErrorKind::configuration,
        fmt::format("{} is not the same on rank 0 and on rank {}", variable, rank),
        "set it alike for all ranks, for example with mpiexec -genv");
  }
}

std::uint64_t start_time_of(int pid) {
  char state = 0;
  std::uint64_t start_time = 0;
  return read_stat(pid, &state, &start_time) ? start_time : 0;
}

bool is_alive(int pid, std::uint64_t start_time) {
  char state = 0;
  std::uint64_t started = 0;
  if (!read_stat(pid, &state, &started)) return false;
  return started == start_time && state != 'Z' && state != 'X';
}

} // namespace ferry::core
