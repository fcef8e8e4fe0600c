// SPDX-License-Identifier: MIT
#include "ferry-info-job.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <ferry/ferry.h>

namespace {

using Line = std::array<char, 1024>;

} // namespace

int describe_job() {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Line own{};
  if (ferry_describe(FERRY_TOPIC_RANK, FERRY_FORMAT_TEXT, own.data(), own.size(), nullptr) !=
      MPI_SUCCESS) {
    std::snprintf(own.data(), own.size(), "%s", ferry_error_text());
  }
  std::vector<Line> all(static_cast<std::size_t>(rank == 0 ? ranks : 0));
  MPI_Gather(
      own.data(), sizeof(Line), MPI_CHAR, all.data(), sizeof(Line), MPI_CHAR, 0, MPI_COMM_WORLD);
  Line ways{};
  const bool met = ferry_barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
  if (met) ferry_comm_explain(MPI_COMM_WORLD, ways.data(), ways.size());
  for (std::size_t i = 0; i < all.size(); ++i) std::printf("rank %-5zu%s\n", i, all[i].data());
  if (rank == 0) std::printf("barrier   %s\n", met ? ways.data() : ferry_error_text());
  MPI_Finalize();
  return met ? 0 : 1;
}
