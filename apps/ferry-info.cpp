// SPDX-License-Identifier: MIT
// ferry-info: what this machine offers to Ferry, the variables that configure it, and what the
// packets of a ring say.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ferry/ferry.h>

#include "../device/packet_print.hpp"
#include "ferry-info-job.hpp"
#include "ferry-info-selftest.hpp"

namespace {

constexpr int kUsageError = 2;

constexpr const char* kHelp =
    "Usage: ferry-info [--selftest] [--env [--markdown] | --table] [--json]\n"
    "       mpiexec ... ferry-info --job\n"
    "       ferry-info --decode FILE|- [--generation NAME]\n"
    "Tells what this machine offers: cores, memory, ways to share it, GPUs, engines. Needs no "
    "mpiexec.\n"
    "\n"
    "  --env       the environment variables of Ferry instead\n"
    "  --table     the sizes at which plans change, and where they come from, instead\n"
    "  --job       of each rank of a job its machine, cores and GPUs, and how the ranks reach each "
    "other\n"
    "  --selftest  tries each layer down to the copy engines of the GPUs here: a line for each "
    "with\n"
    "              pass, fail or skip, a figure and what to do; 1 if one fails, under a minute\n"
    "  --json      as JSON; of the table a file that FERRY_TABLE may name\n"
    "  --markdown  as a page of the documentation (with --env)\n"
    "  --version   the version of Ferry\n"
    "  --help      this text\n"
    "\n"
    "  --decode FILE      the packets of a ring, or of standard input (-): dwords as they lie in\n"
    "                     memory, or as hexadecimal text; 1 if something is not understood\n"
    "  --generation NAME  gfx90a, gfx942, gfx950, gfx1250 or software (which is meant without "
    "it)\n";

struct Question {
  ferry_topic topic = FERRY_TOPIC_MACHINE;
  ferry_format format = FERRY_FORMAT_TEXT;
};

int misuse(const std::string& text) {
  std::fprintf(stderr, "ferry-info: %s; see ferry-info --help\n", text.c_str());
  return kUsageError;
}

// The text may have grown between two calls (it contains numbers that move), hence the margin.
int answer(const Question& question) {
  std::size_t needed = 1;
  std::string text;
  for (int attempt = 0; attempt < 3 && needed > text.size(); ++attempt) {
    text.resize(attempt == 0 ? 65536 : needed + 1024);
    const int code =
        ferry_describe(question.topic, question.format, text.data(), text.size(), &needed);
    if (code != MPI_SUCCESS) {
      std::fprintf(stderr, "ferry-info: %s\n", ferry_error_text());
      return 1;
    }
  }
  text.resize(text.find('\0'));
  const bool complete = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!complete) std::perror("ferry-info: standard output");
  return complete ? 0 : 1;
}

using ferry::device::Generation;

struct Dump {
  std::string file;
  Generation generation = Generation::software;
  bool given = false; // a generation
};

int failure(const std::string& text) {
  std::fprintf(stderr, "ferry-info: %s\n", text.c_str());
  return 1;
}

// Nothing, with errno set, if the file cannot be read.
std::optional<std::string> contents(const std::string& file) {
  const auto close = [](std::FILE* f) {
    if (f != stdin) std::fclose(f);
  };
  const std::unique_ptr<std::FILE, decltype(close)> input(
      file == "-" ? stdin : std::fopen(file.c_str(), "rb"), close);
  if (input == nullptr) return std::nullopt;
  std::string all;
  std::array<char, 65536> part;
  for (std::size_t n = 1; n > 0;) {
    n = std::fread(part.data(), 1, part.size(), input.get());
    all.append(part.data(), n);
  }
  if (std::ferror(input.get()) != 0) return std::nullopt;
  return all;
}

constexpr std::string_view kSpace = " \t\r\n,";

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return (c >= ' ' && c <= '~') || kSpace.find(c) != std::string_view::npos;
  });
}

// Dwords of up to 8 hexadecimal digits each, with or without 0x. False: wrong says what is none.
bool parse_text(std::string_view text, std::vector<std::uint32_t>& dwords, std::string& wrong) {
  for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
       at = text.find_first_not_of(kSpace, at)) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    std::string_view word = text.substr(at, end - at);
    wrong = word;
    if (word.substr(0, 2) == "0x" || word.substr(0, 2) == "0X") word.remove_prefix(2);
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
    if (error != std::errc{} || stop != word.data() + word.size() || word.size() > 8) return false;
    dwords.push_back(value);
    at = end;
  }
  return true;
}

int decode(const Dump& dump) {
  const std::optional<std::string> bytes = contents(dump.file);
  if (!bytes) return failure(dump.file + ": " + std::strerror(errno));
  std::vector<std::uint32_t> dwords(bytes->size() / 4);
  std::size_t rest = bytes->size() % 4;
  if (is_text(*bytes)) {
    dwords.clear();
    rest = 0;
    std::string wrong;
    if (!parse_text(*bytes, dwords, wrong)) {
      return failure(dump.file + ": '" + wrong + "' is no dword in hexadecimal digits");
    }
  } else {
    std::memcpy(dwords.data(), bytes->data(), dwords.size() * 4);
  }
  bool clean = ferry::device::print_ring(
      dwords, dump.generation, [](const std::string& line) { std::printf("%s\n", line.c_str()); });
  if (rest != 0) {
    const auto offset = static_cast<unsigned long long>(dwords.size() * 4);
    std::printf("0x%08llx %zu bytes that are no dword\n", offset, rest);
    clean = false;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return failure(std::string("standard output: ") + std::strerror(errno));
  }
  return clean ? 0 : 1;
}

// Takes in the value of --decode or --generation. False: wrong says why not.
bool takes_value(std::string_view option, const char* next, Dump& dump, std::string& wrong) {
  if (next == nullptr) {
    wrong = std::string(option) + " needs a value";
    return false;
  }
  if (option == "--decode") {
    dump.file = next;
    if (dump.file.empty()) wrong = "--decode needs the name of a file";
    return wrong.empty();
  }
  dump.given = true;
  for (const ferry::device::GenerationInfo& info : ferry::device::kGenerations) {
    if (info.name == std::string_view(next)) {
      dump.generation = info.generation;
      return true;
    }
  }
  wrong = std::string("unknown generation '") + next + "'";
  return false;
}

} // namespace

int main(int argc, char** argv) {
  Question question;
  Dump dump;
  std::string wrong;
  bool json = false;
  bool markdown = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help" || option == "-h") return std::fputs(kHelp, stdout) < 0;
    if (option == "--version") {
      return std::printf(
                 "ferry %d.%d.%d\n", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR,
                 FERRY_VERSION_PATCH) < 0;
    }
    if (option == "--env")
      question.topic = FERRY_TOPIC_ENVIRONMENT;
    else if (option == "--table")
      question.topic = FERRY_TOPIC_TABLE;
    else if (option == "--selftest")
      return self_test();
    else if (option == "--job")
      return describe_job();
    else if (option == "--json")
      json = true;
    else if (option == "--markdown")
      markdown = true;
    else if (option == "--decode" || option == "--generation") {
      if (!takes_value(option, argv[++i], dump, wrong)) return misuse(wrong);
    } else
      return misuse("unknown option '" + std::string(option) + "'");
  }
  if (!dump.file.empty()) {
    if (json || markdown || question.topic != FERRY_TOPIC_MACHINE) {
      return misuse("--decode goes with --generation only");
    }
    return decode(dump);
  }
  if (dump.given) return misuse("--generation goes with --decode only");
  if (json && markdown) return misuse("--json and --markdown exclude each other");
  if (markdown && question.topic != FERRY_TOPIC_ENVIRONMENT) {
    return misuse("--markdown goes with --env only");
  }
  if (json) question.format = FERRY_FORMAT_JSON;
  if (markdown) question.format = FERRY_FORMAT_MARKDOWN;
  return answer(question);
}
