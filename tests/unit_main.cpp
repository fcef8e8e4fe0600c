// SPDX-License-Identifier: MIT
// The main of every unit test: a hard time limit, and one line that says how much was checked.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>

namespace {

constexpr unsigned kTimeLimitSeconds = 120;

unsigned cases_run = 0;

struct Count : doctest::IReporter {
  explicit Count(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    cases_run = stats.numTestCasesPassingFilters;
    std::printf(
        "doctest-counts: %u passed, %u failed\n", cases_run - stats.numTestCasesFailed,
        stats.numTestCasesFailed);
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("count", 1, Count);

} // namespace

int main(int argc, char** argv) {
  alarm(kTimeLimitSeconds);
  doctest::Context context(argc, argv);
  context.setOption("no-path-filenames", true);
  const int result = context.run();
  if (context.shouldExit()) return result;
  // A filter that matches nothing would pass for ever.
  if (cases_run == 0) std::fputs("no test case ran\n", stderr);
  return cases_run == 0 ? 1 : result;
}
