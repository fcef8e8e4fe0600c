// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <boost/program_options.hpp>

namespace ferry::bench {
namespace {

namespace po = boost::program_options;

const std::map<std::string, ferry_operation> kOperations = {
    {"alltoall", FERRY_ALLTOALL},
    {"alltoallv", FERRY_ALLTOALLV}, // of equal blocks, which nobody
                                    // knows before
    {"allgather", FERRY_ALLGATHER},
    {"allreduce", FERRY_ALLREDUCE},
    {"barrier", FERRY_BARRIER},
    {"bcast", FERRY_BCAST},
    {"gather", FERRY_GATHER},
    {"scatter", FERRY_SCATTER}};

bool has_root(ferry_operation operation) {
  return operation == FERRY_BCAST || operation == FERRY_GATHER || operation == FERRY_SCATTER;
}

// What goes with some collectives only.
void check_operation(const Options& options) {
  const ferry_operation operation = options.operation;
  if (options.in_place && operation != FERRY_ALLTOALL && operation != FERRY_ALLGATHER) {
    throw UsageError("--in-place goes with alltoall and allgather only");
  }
  const bool computes = operation == FERRY_ALLREDUCE || operation == FERRY_BARRIER;
  if (options.limit && computes) throw UsageError("--limit goes with what moves blocks only");
  for (const std::uint64_t size : options.sizes) {
    if (operation == FERRY_ALLREDUCE && size % 8 != 0) {
      throw UsageError(fmt::format("allreduce adds 64-bit numbers: {} bytes are not some", size));
    }
  }
}

const std::map<std::string, ferry_form> kForms = {
    {"blocking", FERRY_BLOCKING},
    {"nonblocking", FERRY_NONBLOCKING},
    {"persistent", FERRY_PERSISTENT}};
const std::map<std::string, bool> kMemories = {
    {"private", false}, {"shared", true}, {"alloc", true}};
const std::map<std::string, bool> kPeers = {{"mpi", true}, {"none", false}};

template <class Value>
Value choose(
    const std::map<std::string, Value>& choices, const std::string& text, const char* what) {
  if (const auto found = choices.find(text); found != choices.end()) return found->second;
  std::string allowed;
  for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : ", ") + name;
  throw UsageError(fmt::format("{} '{}' is not one of {}", what, text, allowed));
}

template <class Value>
const char* name_in(const std::map<std::string, Value>& choices, Value value) {
  for (const auto& [name, candidate] : choices) {
    if (candidate == value) return name.c_str();
  }
  return "unknown";
}

po::options_description describe() {
  po::options_description all("Options");
  const auto text = [](const char* initial) {
    return po::value<std::string>()->default_value(initial);
  };
  all.add_options() //
      ("min", text("8"), "smallest size in bytes; suffixes K, M, G") //
      ("max", text("4M"), "largest size; equal to --min: this one size, any number") //
      ("sizes", po::value<std::string>(), "these sizes in this order instead, as 8,1M,64K") //
      ("form", text("blocking"), "blocking, nonblocking or persistent") //
      ("memory", text("private"),
       "private (of the program) or shared (of ferry_alloc; alloc is the same)") //
      ("offset", po::value<int>()->default_value(0), "buffers begin so far behind a page") //
      ("in-place", "send from the receive buffer (alltoall, allgather)") //
      ("root", po::value<int>(), "root of bcast, gather, scatter (0)") //
      ("peer", text("mpi"), "mpi: measure the MPI below too; none: Ferry alone") //
      ("limit", "measure bare memcpy of the same bytes too") //
      ("seconds", po::value<double>()->default_value(2),
       "time for the rounds of a size, at most") //
      ("iterations", po::value<int>(), "timed rounds per size (11, fewer when calls are long)") //
      ("check", "verify every byte before and after timing") //
      ("json", po::value<std::string>(), "write the results to this file; - is standard output") //
      ("plot", po::value<std::string>(),
       "draw time over size with gnuplot: FILE.svg or FILE.png") //
      ("draw", po::value<std::string>(), "measure nothing, draw the results in this JSON file") //
      ("seed", po::value<std::uint64_t>()->default_value(1), "seed of the data") //
      ("help,h", "this text");
  return all;
}

// A peer that takes a job of its own is not for this program.
bool read_peer(const std::string& text) {
  for (const char* other : {"tuned", "openmpi", ","}) {
    if (text.find(other) == std::string::npos) continue;
    throw UsageError(fmt::format(
        "--peer '{}' takes several jobs: ferry-bench-jobs peers COLLECTIVE --peer {}", text, text));
  }
  return choose(kPeers, text, "--peer");
}

std::vector<std::uint64_t> list_sizes(std::uint64_t smallest, std::uint64_t largest) {
  if (smallest == largest) return {smallest};
  if (smallest > largest) {
    throw UsageError(fmt::format("--min {} is larger than --max {}", smallest, largest));
  }
  std::vector<std::uint64_t> sizes;
  for (int bit = 0; bit < 63; ++bit) {
    const std::uint64_t size = std::uint64_t{1} << bit;
    if (size >= smallest && size <= largest) sizes.push_back(size);
  }
  if (sizes.empty()) {
    throw UsageError(fmt::format("no power of two lies between {} and {}", smallest, largest));
  }
  return sizes;
}

std::vector<std::uint64_t> read_sizes(const po::variables_map& values) {
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  if (values.count("sizes") == 0) {
    return list_sizes(parse_size(text("min"), "--min"), parse_size(text("max"), "--max"));
  }
  if (!values["min"].defaulted() || !values["max"].defaulted()) {
    throw UsageError("--sizes does not go with --min and --max");
  }
  std::vector<std::uint64_t> sizes;
  std::istringstream list(text("sizes"));
  for (std::string size; std::getline(list, size, ',');) {
    sizes.push_back(parse_size(size, "--sizes"));
  }
  if (sizes.empty()) throw UsageError("--sizes without a size");
  return sizes;
}

// Names are looked at before anything is measured.
void read_plot(const po::variables_map& values, Options& options) {
  if (values.count("draw") != 0) options.draw = values["draw"].as<std::string>();
  if (values.count("plot") == 0) {
    if (!options.draw.empty()) throw UsageError("--draw goes with --plot");
    return;
  }
  options.plot = values["plot"].as<std::string>();
  const auto ends = [&](const std::string& end) {
    return options.plot.size() > end.size() && options.plot.ends_with(end);
  };
  if (ends(".svg") || ends(".png")) return;
  throw UsageError(fmt::format("--plot '{}' ends neither in .svg nor in .png", options.plot));
}

int read_root(const po::variables_map& values, const Options& options, int ranks) {
  if (values.count("root") == 0) return 0;
  if (!has_root(options.operation))
    throw UsageError("--root goes with bcast, gather, scatter only");
  const int root = values["root"].as<int>();
  if (root < 0 || root >= ranks) {
    throw UsageError(fmt::format("--root {} is no rank of 0 to {}", root, ranks - 1));
  }
  return root;
}

std::optional<int> read_rounds(const po::variables_map& values) {
  if (values.count("iterations") == 0) return std::nullopt;
  const int rounds = values["iterations"].as<int>();
  if (rounds < 1) throw UsageError(fmt::format("--iterations {} is less than 1", rounds));
  return rounds;
}

// The receive buffer is the largest; its size must be a number of bytes that can be addressed.
void check_total(const Options& options, int ranks) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  if (largest > most / 2 / static_cast<std::uint64_t>(ranks)) {
    throw UsageError(fmt::format("size {} is too large", largest));
  }
}

void read_numbers(const po::variables_map& values, Options& options) {
  const int offset = values["offset"].as<int>();
  if (offset < 0 || offset > 4095) {
    throw UsageError(fmt::format("--offset {} is not in 0 to 4095", offset));
  }
  options.offset = static_cast<std::size_t>(offset);
  options.seconds = values["seconds"].as<double>();
  if (!(options.seconds > 0 && options.seconds <= 3600)) {
    throw UsageError(fmt::format("--seconds {} is not in 0 to 3600", options.seconds));
  }
}

Options interpret(const po::variables_map& values, int ranks) {
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  Options options;
  read_plot(values, options);
  if (!options.draw.empty()) return options;
  if (values.count("collective") == 0) {
    throw UsageError(
        "which collective? alltoall, alltoallv, allgather, allreduce, barrier, bcast, gather or "
        "scatter");
  }
  options.operation = choose(kOperations, text("collective"), "collective");
  options.form = choose(kForms, text("form"), "--form");
  options.shared = choose(kMemories, text("memory"), "--memory");
  options.peer = read_peer(text("peer"));
  options.sizes = read_sizes(values);
  options.limit = values.count("limit") != 0;
  read_numbers(values, options);
  options.in_place = values.count("in-place") != 0;
  options.check = values.count("check") != 0;
  options.seed = values["seed"].as<std::uint64_t>();
  if (values.count("json") != 0) options.json = text("json");
  if (values.count("json") != 0 && options.json.empty()) throw UsageError("--json without a name");
  if (options.operation == FERRY_BARRIER) options.sizes = {0};
  check_operation(options);
  options.root = read_root(values, options, ranks);
  options.rounds = read_rounds(values);
  check_total(options, ranks);
  return options;
}

} // namespace

const char* name_of(ferry_operation operation) {
  return name_in(kOperations, operation);
}
const char* name_of(ferry_form form) {
  return name_in(kForms, form);
}

std::uint64_t parse_size(const std::string& text, const std::string& option) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string suffix(rest, end);
  constexpr std::string_view kSuffixes = "KMG";
  std::size_t shift = 0;
  if (suffix.size() == 1 && kSuffixes.find(suffix[0]) != std::string_view::npos) {
    shift = 10 * (kSuffixes.find(suffix[0]) + 1);
  } else if (!suffix.empty()) {
    throw UsageError(fmt::format("{} '{}' is no size; use 8, 64K, 1M, 2G", option, text));
  }
  if (error == std::errc::result_out_of_range || (number << shift) >> shift != number) {
    throw UsageError(fmt::format("{} '{}' is too large", option, text));
  }
  if (error != std::errc{}) {
    throw UsageError(fmt::format("{} '{}' is no size; use 8, 64K, 1M, 2G", option, text));
  }
  return number << shift;
}

std::optional<Options> parse_options(int argc, const char* const* argv, int ranks) {
  po::options_description all = describe();
  all.add_options()("collective", po::value<std::string>());
  po::positional_options_description positional;
  positional.add("collective", 1);
  po::variables_map values;
  try {
    // No abbreviations: an option that is added later must not change what a script means.
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(argc, argv).options(all).positional(positional).style(style).run(),
        values);
    po::notify(values);
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  if (values.count("help") != 0) return std::nullopt;
  return interpret(values, ranks);
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: mpiexec -n RANKS ferry-bench COLLECTIVE [options]\n"
          "       ferry-bench --draw RESULTS.json --plot FILE\n"
          "Times a collective of Ferry and of the MPI below in turns. Sizes are bytes per peer\n"
          "block (of the message for bcast): the powers of two from --min to --max.\n\n"
       << describe()
       << "\nA time is that of one call of many back to back, on the slowest rank.\n"
          "ratio = MPI median / Ferry median: above 1 Ferry is quicker.\n"
          "GB/s = bytes a rank exchanges with others per Ferry median, in 10^9 bytes.\n"
          "Several peers, cliffs, and the table of all: ferry-bench-jobs --help.\n"
          "Exit status: 0; 1 when Ferry delivered wrong bytes; 2 for a bad command line.\n";
  return text.str();
}

} // namespace ferry::bench
