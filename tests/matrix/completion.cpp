// SPDX-License-Identifier: MIT
#include "completion.hpp"

#include <numeric>
#include <utility>

namespace ferry::test {
namespace {

struct Run {
  std::vector<MPI_Request>& requests;
  Completed done;
  int size = static_cast<int>(requests.size());

  void tell(int index, const MPI_Status& status) {
    done.statuses[static_cast<std::size_t>(index)] = status;
    ++done.times[static_cast<std::size_t>(index)];
  }
  void check(int code, const char* function) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    done.problem = std::string(function) + ": " + text;
    for (const MPI_Status& status : done.statuses) {
      done.problem += " " + std::to_string(status.MPI_ERROR);
    }
  }
  [[nodiscard]] bool fine() const { return done.problem.empty(); }

  void all_at_once(bool testing) {
    int flag = 0;
    while (flag == 0 && fine()) {
      if (testing) {
        check(MPI_Testall(size, requests.data(), &flag, done.statuses.data()), "MPI_Testall");
      } else {
        check(MPI_Waitall(size, requests.data(), done.statuses.data()), "MPI_Waitall");
        flag = 1;
      }
    }
    done.times.assign(requests.size(), 1);
  }

  void any(bool testing) {
    int index = 0;
    while (index != MPI_UNDEFINED && fine()) {
      int flag = 1;
      MPI_Status status;
      if (testing) {
        check(MPI_Testany(size, requests.data(), &index, &flag, &status), "MPI_Testany");
      } else {
        check(MPI_Waitany(size, requests.data(), &index, &status), "MPI_Waitany");
      }
      if (flag == 0) index = 0;
      if (flag != 0 && index != MPI_UNDEFINED) tell(index, status);
    }
  }

  void some(bool testing) {
    int count = 0;
    std::vector<int> indices(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    while (count != MPI_UNDEFINED && fine()) {
      if (testing) {
        check(
            MPI_Testsome(size, requests.data(), &count, indices.data(), statuses.data()),
            "MPI_Testsome");
      } else {
        check(
            MPI_Waitsome(size, requests.data(), &count, indices.data(), statuses.data()),
            "MPI_Waitsome");
        if (count == 0) done.problem = "MPI_Waitsome came back with nothing";
      }
      for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) {
        tell(indices[static_cast<std::size_t>(i)], statuses[static_cast<std::size_t>(i)]);
      }
    }
  }

  // In the order of the dice, which is another on each rank.
  void one_by_one(Dice& dice, bool testing) {
    std::vector<std::size_t> left(requests.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (!left.empty() && fine()) {
      const std::size_t at = dice.word() % left.size();
      const std::size_t index = left[at];
      MPI_Status status;
      int flag = 1;
      if (testing) {
        check(MPI_Test(&requests[index], &flag, &status), "MPI_Test");
      } else {
        check(MPI_Wait(&requests[index], &status), "MPI_Wait");
      }
      if (flag == 0) continue;
      tell(static_cast<int>(index), status);
      std::swap(left[at], left.back());
      left.pop_back();
    }
  }
};

} // namespace

const char* name_of(Completion how) {
  constexpr const char* kNames[] = {"waitall", "waitany",  "waitsome", "testall",
                                    "testany", "testsome", "wait",     "test"};
  return kNames[static_cast<int>(how)];
}

Completed complete(Completion how, Dice& dice, std::vector<MPI_Request>& requests) {
  Run run{requests, {}};
  run.done.statuses.resize(requests.size());
  run.done.times.assign(requests.size(), 0);
  switch (how) {
    case Completion::waitall:
    case Completion::testall:
      run.all_at_once(how == Completion::testall);
      break;
    case Completion::waitany:
    case Completion::testany:
      run.any(how == Completion::testany);
      break;
    case Completion::waitsome:
    case Completion::testsome:
      run.some(how == Completion::testsome);
      break;
    case Completion::wait:
    case Completion::test:
      run.one_by_one(dice, how == Completion::test);
      break;
  }
  return std::move(run.done);
}

} // namespace ferry::test
