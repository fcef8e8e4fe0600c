// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include "lib/exec/recorder.hpp"

using namespace ferry::core;

namespace {

CollectiveDesc call(Operation operation, std::uint64_t bytes, int root = 0) {
  CollectiveDesc desc;
  desc.operation = operation;
  desc.root = root;
  desc.recv_layout = contiguous_layout(bytes, 1);
  return desc;
}

} // namespace

TEST_CASE("recorder: the newest operations, the newest last") {
  const auto recorder = std::make_unique<Recorder>();
  CHECK(recorder->last(4).empty());
  recorder->note(call(Operation::alltoall, 8), 1);
  CHECK(recorder->last(4) == "call 1 alltoall of 8 bytes");
  recorder->note(call(Operation::broadcast, 1ull << 40, 70'000), 2);
  recorder->note(call(Operation::barrier, 0), 3);
  recorder->note(call(Operation::allgather, 64), 0);
  CollectiveDesc irregular = call(Operation::scatter, 8, 3);
  irregular.irregular = std::make_shared<Irregular>();
  recorder->note(irregular, 4);
  CHECK(
      recorder->last(4) ==
      "call 2 broadcast of 1099511627776 bytes with root 70000, call 3 barrier, start of a "
      "persistent allgather of 64 bytes, call 4 scatter of blocks of their own with root 3");
  CHECK(recorder->newest() == "call 4 scatter of blocks of their own with root 3");
  for (std::uint64_t i = 5; i < 100; ++i) recorder->note(call(Operation::alltoall, i), i);
  CHECK(recorder->last(2) == "call 98 alltoall of 98 bytes, call 99 alltoall of 99 bytes");
}

TEST_CASE("recorder: who reads beside the writer sees whole entries") {
  const auto recorder = std::make_unique<Recorder>();
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !over.load(); ++i) recorder->note(call(Operation::alltoall, i), i);
  });
  int wrong = 0;
  for (int looks = 0; looks < 20'000; ++looks) {
    const std::string text = recorder->newest();
    unsigned long long number = 0;
    unsigned long long bytes = 0;
    if (text.empty()) continue;
    const int fields = std::sscanf(text.c_str(), "call %llu alltoall of %llu", &number, &bytes);
    if (fields != 2 || number != bytes) ++wrong;
  }
  over.store(true);
  writer.join();
  CHECK(wrong == 0);
}
