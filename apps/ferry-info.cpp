// SPDX-License-Identifier: MIT
// ferry-info: what this machine offers to Ferry, and the variables that configure it.
#include <cstdio>
#include <string>
#include <string_view>

#include <ferry/ferry.h>

namespace {

constexpr int kUsageError = 2;

constexpr const char* kHelp =
    "Usage: ferry-info [--env [--markdown]] [--json]\n"
    "Tells what this machine offers: cores, memory, ways to share it, engines. Needs no mpiexec.\n"
    "\n"
    "  --env       the environment variables of Ferry instead\n"
    "  --json      as JSON\n"
    "  --markdown  as a page of the documentation (with --env)\n"
    "  --version   the version of Ferry\n"
    "  --help      this text\n";

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

} // namespace

int main(int argc, char** argv) {
  Question question;
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
    else if (option == "--json")
      json = true;
    else if (option == "--markdown")
      markdown = true;
    else
      return misuse("unknown option '" + std::string(option) + "'");
  }
  if (json && markdown) return misuse("--json and --markdown exclude each other");
  if (markdown && question.topic != FERRY_TOPIC_ENVIRONMENT) {
    return misuse("--markdown goes with --env only");
  }
  if (json) question.format = FERRY_FORMAT_JSON;
  if (markdown) question.format = FERRY_FORMAT_MARKDOWN;
  return answer(question);
}
