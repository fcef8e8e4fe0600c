// SPDX-License-Identifier: MIT
#include "lib/interpose/tally.hpp"

#include <fmt/format.h>
#include <cstdio>

#include "lib/config/config.hpp"

namespace ferry::interpose {
namespace {

using Holder = std::shared_ptr<CommTally>;

int print_and_delete(MPI_Comm, int, void* value, void*) {
  auto* holder = static_cast<Holder*>(value);
  (*holder)->print();
  delete holder;
  return MPI_SUCCESS;
}

int keyval() {
  static const int value = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, print_and_delete, &made, nullptr);
    return made;
  }();
  return value;
}

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return length > 0 ? name : "an unnamed communicator";
}

// " (slots 100, engine 20)"
std::string list_of(const std::map<std::string, std::uint64_t>& counts) {
  std::string list;
  for (const auto& [name, count] : counts) {
    list += fmt::format("{}{} {}", list.empty() ? " (" : ", ", name, count);
  }
  return list.empty() ? list : list + ")";
}

} // namespace

void Tally::taken(const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++taken_;
  ++paths_[path];
}

void Tally::made() {
  const std::lock_guard lock(mutex_);
  ++taken_;
}

void Tally::started(const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++starts_;
  ++paths_[path];
}

void Tally::passed(const char* why) {
  const std::lock_guard lock(mutex_);
  ++passed_[why != nullptr ? why : "not carried"];
}

std::string Tally::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = fmt::format("{} taken", taken_);
  if (starts_ > 0) text += fmt::format(", {} started", starts_);
  text += list_of(paths_);
  for (const auto& [why, count] : passed_) text += fmt::format(", {} passed: {}", count, why);
  return text;
}

CommTally::CommTally(MPI_Comm comm) : name_(name_of(comm)) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &ranks_);
}

std::shared_ptr<Tally> CommTally::of(const char* function) {
  const std::lock_guard lock(mutex_);
  auto& tally = tallies_[function];
  if (tally == nullptr) tally = std::make_shared<Tally>();
  return tally;
}

void CommTally::print() const {
  const int verbose = core::config().verbose;
  if (verbose == 0 || (verbose == 1 && rank_ != 0)) return;
  const std::string where =
      verbose == 1 ? name_ : fmt::format("rank {} of {}, {}", rank_, ranks_, name_);
  const std::lock_guard lock(mutex_);
  for (const auto& [function, tally] : tallies_) {
    std::fprintf(
        stderr, "ferry: %s: %s %s\n", where.c_str(), function.c_str(), tally->text().c_str());
  }
}

bool tallying() {
  return core::config().verbose > 0;
}

std::shared_ptr<CommTally> tallies_of(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, keyval(), &value, &found);
  if (found != 0) return *static_cast<Holder*>(value);
  auto holder = std::make_unique<Holder>(std::make_shared<CommTally>(comm));
  PMPI_Comm_set_attr(comm, keyval(), holder.get());
  return *holder.release();
}

} // namespace ferry::interpose
