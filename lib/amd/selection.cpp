// SPDX-License-Identifier: MIT
#include "lib/amd/selection.hpp"

#include <fmt/format.h>

namespace ferry::amd {
namespace {

using core::Operation;
using core::Table;

// The entries of an operation, and who published what they are without a measured table.
struct Row {
  Operation operation;
  std::uint64_t Table::*words_to;
  std::uint64_t Table::*engines_from;
  const char* name;
  const char* source;
};

// RCCL has further tiers of broadcasts, which Ferry has not: scatter and allgather from 2 MiB, and
// a ring from 32 MiB.
constexpr Row kRows[] = {
    {Operation::alltoall, &Table::amd_alltoall_words_to, &Table::amd_alltoall_engines_from,
     "amd_alltoall_engines_from", "RCCL, NCCL_GIN_A2A_SDMA_MIN_BYTES (rocm-systems #10386)"},
    {Operation::allgather, &Table::amd_allgather_words_to, &Table::amd_allgather_engines_from,
     "amd_allgather_engines_from", "RCCL tests, SDMA from 64 KiB a rank (#10930)"},
    {Operation::broadcast, &Table::amd_broadcast_words_to, &Table::amd_broadcast_engines_from,
     "amd_broadcast_engines_from", "RCCL tests, flat put above 256 KiB (#11142)"},
};

const Row* row_of(Operation operation) {
  for (const Row& row : kRows) {
    if (row.operation == operation) return &row;
  }
  return nullptr;
}

} // namespace

std::uint64_t longest_words(Operation operation, const core::TableRecord& table) {
  const Row* const row = row_of(operation);
  return row != nullptr ? table.values.*row->words_to : 0;
}

Selection select_path(
    Operation operation, std::uint64_t block_bytes, bool kernels_work,
    const core::TableRecord& table) {
  const Row* const row = row_of(operation);
  if (row == nullptr) return {false, "no measured size is known"};
  const std::uint64_t from = table.values.*row->engines_from;
  const bool engines = block_bytes >= from;
  if (!engines && !kernels_work) return {false, "kernels would be faster for this size"};
  const bool measured = table.measured.*row->engines_from != 0;
  return {
      !engines,
      fmt::format(
          "{} {} bytes ({} {}, {}: {})", engines ? "copy engines from" : "kernels below", from,
          row->name, from, table.name, measured ? "measured on " + table.gpu : row->source)};
}

} // namespace ferry::amd
