// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/plot.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ferry::bench {
namespace {

using Json = nlohmann::json;
using Line = std::map<std::uint64_t, double>; // microseconds by size

// The lines in the order of the legend, named by what is drawn.
std::vector<std::pair<std::string, Line>> lines_of(const Json& results) {
  Line ferry;
  Line limit;
  std::map<std::string, Line> peers;
  for (const Json& row : results) {
    const auto bytes = row.at("bytes").get<std::uint64_t>();
    const auto note = [&](Line& line, const char* key) {
      if (row.contains(key) && row[key].is_number()) line[bytes] = row[key].get<double>();
    };
    note(ferry, "ferry_us_median");
    note(limit, "limit_us_median");
    if (row.contains("peer") && row["peer"].is_string()) {
      note(peers[row["peer"].get<std::string>()], "peer_us_median");
    }
  }
  std::vector<std::pair<std::string, Line>> lines = {{"Ferry", ferry}};
  for (const auto& [name, line] : peers) lines.emplace_back(name, line);
  lines.emplace_back("memcpy", limit);
  std::erase_if(lines, [](const auto& line) { return line.second.empty(); });
  return lines;
}

// Names come from files; gnuplot's quotes must not end early.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string title_of(const Json& row) {
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  return fmt::format(
      "{}, {}, {} memory, {} ranks", text("collective"), text("form"), text("memory"),
      row.at("ranks").get<int>());
}

} // namespace

std::string plot_script(const std::string& json, const std::string& file) {
  try {
    const Json results = Json::parse(json);
    if (!results.is_array() || results.empty()) throw std::runtime_error("no results to draw");
    const bool svg = file.ends_with(".svg");
    std::string script = fmt::format(
        "set terminal {}\nset output {}\nset title {} noenhanced\n",
        svg ? "svg size 900,600 background 'white'" : "pngcairo size 900,600", quoted(file),
        quoted(title_of(results.front())));
    script +=
        "set logscale xy\nset format x '%.0b%B'\nset xlabel 'bytes a block'\n"
        "set ylabel 'microseconds a call, median'\nset grid\nset key top left noenhanced\n";
    const auto lines = lines_of(results);
    std::vector<std::string> plots;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      script += fmt::format("$data{} << EOD\n", i);
      for (const auto& [bytes, time] : lines[i].second) {
        if (bytes > 0) script += fmt::format("{} {}\n", bytes, time);
      }
      script += "EOD\n";
      plots.push_back(
          fmt::format("$data{} using 1:2 with linespoints title {}", i, quoted(lines[i].first)));
    }
    return script + fmt::format("plot {}\n", fmt::join(plots, ", "));
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("these are no results of ferry-bench: {}", error.what()));
  }
}

void require_gnuplot() {
  if (std::system("command -v gnuplot >/dev/null 2>&1") == 0) return;
  throw std::runtime_error("--plot needs gnuplot; install the package gnuplot-nox");
}

void draw_results(const std::string& json, const std::string& file) {
  const std::string script = plot_script(json, file);
  require_gnuplot();
  std::signal(SIGPIPE, SIG_IGN); // a gnuplot that ends early is told by its status
  std::FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) throw std::runtime_error("--plot: gnuplot cannot be started");
  const bool written = std::fputs(script.c_str(), gnuplot) >= 0;
  if (pclose(gnuplot) != 0 || !written) {
    throw std::runtime_error(fmt::format("--plot {}: gnuplot failed", file));
  }
}

} // namespace ferry::bench
