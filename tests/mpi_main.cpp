// SPDX-License-Identifier: MIT
// doctest under mpiexec: every rank runs every case in the same order and verifies, and a case has
// failed when it failed on any rank.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <mpi.h>
#include <unistd.h>

#include "support/communicators.hpp"
#include "support/world.hpp"

namespace {

using ferry::test::world;

constexpr unsigned kDefaultLimitSeconds = 220;
constexpr unsigned kSecondsToPrint = 3;
constexpr int kFailuresShown = 10;
constexpr int kTimeLimitExit = 124;

char rank_label[64] = "";
char case_name[ferry::test::kNoteBytes] = "before the first case";

void set_case_name(const char* name) {
  std::snprintf(case_name, sizeof case_name, "%s", name);
}

std::vector<int>& case_failures() {
  static std::vector<int> failures;
  return failures;
}

// Prints failures with the rank in front; one write per line, so that ranks do not mix within it.
class RankReporter : public doctest::IReporter {
 public:
  explicit RankReporter(const doctest::ContextOptions& /*options*/) {}

  void report_query(const doctest::QueryData& query) override {
    for (unsigned i = 0; world().rank == 0 && i < query.num_data; ++i) {
      std::printf("%s\n", query.data[i]->m_name);
    }
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_start(const doctest::TestCaseData& data) override {
    set_case_name(data.m_name);
    ferry::test::note("");
    shown_ = 0;
    case_failures().push_back(0);
  }
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    case_failures().back() = stats.failure_flags == 0 ? 0 : 1;
    if (shown_ > kFailuresShown) {
      print("", std::to_string(shown_ - kFailuresShown) + " more failures of this case");
    }
    if (std::getenv("TEST_TIMES") != nullptr && world().rank == 0) {
      std::printf("%8.2f s  %s\n", stats.seconds, case_name);
    }
    set_case_name("between cases");
  }
  void test_case_exception(const doctest::TestCaseException& e) override {
    print(
        "",
        std::string("exception: ") + e.error_string.c_str() + " at " + ferry::test::note_text());
  }
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& data) override {
    if (!data.m_failed || ++shown_ > kFailuresShown) return;
    std::string text = std::string(data.m_expr) + " is " + data.m_decomp.c_str();
    if (data.m_threw) text += std::string(", threw ") + data.m_exception.c_str();
    const int contexts = get_num_active_contexts();
    for (int i = 0; i < contexts; ++i) text += " [" + context_text(i) + "]";
    print(place(data.m_file, data.m_line), text);
  }
  void log_message(const doctest::MessageData& data) override {
    if (shown_ > kFailuresShown) return;
    print(place(data.m_file, data.m_line), data.m_string.c_str());
  }
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}

 private:
  static std::string context_text(int index) {
    std::ostringstream stream;
    get_active_contexts()[index]->stringify(&stream);
    return stream.str();
  }
  static std::string place(const char* file, int line) {
    return std::string(file) + ":" + std::to_string(line) + ": ";
  }
  static void print(const std::string& where, const std::string& what) {
    std::fprintf(stderr, "%s %s%s: %s\n", rank_label, where.c_str(), case_name, what.c_str());
  }

  int shown_ = 0;
};

REGISTER_REPORTER("ranks", 1, RankReporter);

// The time limit: says where this rank is, leaves the others time to say the same (the launcher
// ends all when one exits), and exits. Only async-signal-safe calls.
void on_time_limit(int /*signal*/) {
  const char* parts[] = {rank_label, " time limit in case '",  case_name,
                         "' at '",   ferry::test::note_text(), "'\n"};
  char line[3 * ferry::test::kNoteBytes];
  std::size_t length = 0;
  for (const char* part : parts) {
    for (; *part != '\0'; ++part) line[length++] = *part;
  }
  if (write(STDERR_FILENO, line, length) < 0) _exit(kTimeLimitExit + 1);
  sleep(kSecondsToPrint);
  _exit(kTimeLimitExit);
}

// By messages alone: what is tested may be the collectives by these very names.
void largest_of_all(int* values, int count) {
  constexpr int kTag = 4711;
  std::vector<int> other(static_cast<std::size_t>(count));
  for (int rank = 1; rank < world().size; ++rank) {
    if (world().rank == rank) {
      MPI_Send(values, count, MPI_INT, 0, kTag, MPI_COMM_WORLD);
      MPI_Recv(values, count, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (world().rank > 0) continue;
    MPI_Recv(other.data(), count, MPI_INT, rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i)
      values[i] = std::max(values[i], other[static_cast<std::size_t>(i)]);
  }
  for (int rank = 1; world().rank == 0 && rank < world().size; ++rank) {
    MPI_Send(values, count, MPI_INT, rank, kTag, MPI_COMM_WORLD);
  }
}

// Failed cases over all ranks, the same number on every rank; -1 when ranks ran different cases.
int combine(int* total) {
  auto& failures = case_failures();
  const int count = static_cast<int>(failures.size());
  int range[2] = {count, -count};
  largest_of_all(range, 2);
  *total = range[0];
  if (range[0] != -range[1]) return -1;
  largest_of_all(failures.data(), count);
  int failed = 0;
  for (const int f : failures) failed += f;
  return failed;
}

int run(int argc, char** argv) {
  doctest::Context context(argc, argv);
  context.setOption("reporters", "ranks");
  const int local = context.run();
  if (context.shouldExit()) return local;
  int total = 0;
  const int failed = combine(&total);
  if (failed < 0 && world().rank == 0) std::fprintf(stderr, "ranks ran different cases\n");
  if (total == 0 && world().rank == 0) std::fprintf(stderr, "no case selected\n");
  if (failed >= 0 && world().rank == 0) {
    std::printf("doctest-counts: %d passed, %d failed\n", total - failed, failed);
  }
  return failed == 0 && total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (provided != MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "MPI gives no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  const std::string limit = ferry::test::environment("TEST_LIMIT_SECONDS", "");
  const int seconds =
      limit.empty() ? static_cast<int>(kDefaultLimitSeconds) : std::atoi(limit.c_str());
  std::snprintf(rank_label, sizeof rank_label, "[rank %d of %d]", world().rank, world().size);
  std::signal(SIGALRM, on_time_limit);
  alarm(static_cast<unsigned>(seconds));
  const int result = run(argc, argv);
  ferry::test::free_zoo();
  set_case_name("MPI_Finalize");
  MPI_Finalize();
  return result;
}
