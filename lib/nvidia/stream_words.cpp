// SPDX-License-Identifier: MIT
#include "lib/nvidia/stream_words.hpp"

#include <algorithm>

#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

namespace {

CUdeviceptr address(const std::uint64_t* word) {
  return reinterpret_cast<CUdeviceptr>(word);
}

void submit(hipStream_t stream, std::vector<CUstreamBatchMemOpParams>& operations) {
  constexpr std::size_t kMost = 128;
  for (std::size_t at = 0; at < operations.size(); at += kMost) {
    const std::size_t number = std::min(kMost, operations.size() - at);
    check_driver(
        driver().batch(stream, static_cast<unsigned>(number), operations.data() + at, 0),
        "cuStreamBatchMemOp");
  }
}

CUstreamBatchMemOpParams write_operation(const std::uint64_t* word, std::uint64_t value) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  op.writeValue.address = address(word);
  op.writeValue.value64 = value;
  op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT; // behind all that the stream did before
  return op;
}

CUstreamBatchMemOpParams wait_operation(const std::uint64_t* word, std::uint64_t value) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  op.waitValue.address = address(word);
  op.waitValue.value64 = value;
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return op;
}

} // namespace

void StreamWords::gate(
    hipStream_t stream, std::span<const std::uint64_t* const> waits,
    std::span<std::uint64_t* const> raises, Value value, bool advance) const {
  GateArgs args;
  args.started = started_;
  args.advance = advance;
  args.scale = value.scale;
  args.offset = value.offset;
  args.patience = patience_;
  std::size_t waited = 0;
  std::size_t raised = 0;
  do {
    for (args.waits = 0; args.waits < kGateWords && waited < waits.size(); ++args.waits) {
      args.wait[args.waits] = waits[waited++];
    }
    const bool all_waited = waited == waits.size();
    args.raises = 0;
    for (; all_waited && args.raises < kGateWords && raised < raises.size(); ++args.raises) {
      args.raise[args.raises] = raises[raised++];
    }
    launch_gate(args, stream);
    args.advance = false;
  } while (waited < waits.size() || raised < raises.size());
}

void StreamWords::advance(hipStream_t stream, std::span<std::uint64_t* const> words) {
  if (counted_) return gate(stream, {}, words, {}, true);
  ++epoch_;
  std::vector<CUstreamBatchMemOpParams> operations{write_operation(started_, epoch_)};
  for (std::uint64_t* word : words) operations.push_back(write_operation(word, epoch_));
  submit(stream, operations);
}

void StreamWords::wait(
    hipStream_t stream, std::span<const std::uint64_t* const> words, Value value) const {
  if (words.empty()) return;
  if (counted_) return gate(stream, words, {}, value, false);
  const std::uint64_t expected = epoch_ * value.scale + static_cast<std::uint64_t>(value.offset);
  if (static_cast<std::int64_t>(expected) <= 0) return; // of an epoch before the first
  std::vector<CUstreamBatchMemOpParams> operations;
  for (const std::uint64_t* word : words) operations.push_back(wait_operation(word, expected));
  submit(stream, operations);
}

void StreamWords::raise(
    hipStream_t stream, std::span<std::uint64_t* const> words, Value value) const {
  if (words.empty()) return;
  if (counted_) return gate(stream, {}, words, value, false);
  const std::uint64_t reached = epoch_ * value.scale + static_cast<std::uint64_t>(value.offset);
  std::vector<CUstreamBatchMemOpParams> operations;
  for (std::uint64_t* word : words) operations.push_back(write_operation(word, reached));
  submit(stream, operations);
}

void StreamWords::wait_for(hipStream_t stream, const std::uint64_t* word, std::uint64_t value) {
  std::vector<CUstreamBatchMemOpParams> operations{wait_operation(word, value)};
  submit(stream, operations);
}

void StreamWords::write(
    hipStream_t stream, std::span<std::uint64_t* const> words, std::uint64_t value) {
  std::vector<CUstreamBatchMemOpParams> operations;
  for (std::uint64_t* word : words) operations.push_back(write_operation(word, value));
  submit(stream, operations);
}

} // namespace ferry::nvidia
