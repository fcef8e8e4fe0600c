// SPDX-License-Identifier: MIT
// The parts of ferry-bench that need no MPI job: data, buffers, options, statistics.
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "apps/ferry-bench/buffers.hpp"
#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/pattern.hpp"
#include "apps/ferry-bench/plot.hpp"
#include "apps/ferry-bench/report.hpp"
#include "apps/ferry-bench/runner.hpp"

namespace {

using namespace ferry::bench;

constexpr std::array<std::size_t, 9> kSizes = {0, 1, 7, 8, 9, 15, 64, 65, 4097};
constexpr Block kBlock{5, 3, 2, 1};

std::vector<std::byte> data_of(std::size_t size, const Block& block) {
  std::vector<std::byte> bytes(size);
  write_data(bytes, block);
  return bytes;
}

std::vector<std::uint64_t> sizes_of(const std::vector<const char*>& arguments) {
  std::vector<const char*> argv = {"ferry-bench", "alltoall"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return parse_options(static_cast<int>(argv.size()), argv.data(), 2)->sizes;
}

Options options_for(ferry_operation operation, bool in_place, int root = 0) {
  Options options;
  options.operation = operation;
  options.in_place = in_place;
  options.root = root;
  options.sizes = {100};
  return options;
}

} // namespace

TEST_CASE("data is recognised, and every changed byte is counted") {
  for (const std::size_t size : kSizes) {
    auto bytes = data_of(size, kBlock);
    CHECK(count_wrong(bytes, kBlock) == 0);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] ^= std::byte{1};
      REQUIRE(count_wrong(bytes, kBlock) == i + 1);
    }
  }
}

TEST_CASE("poison is wrong in every byte and changes with the iteration") {
  for (const std::size_t size : kSizes) {
    std::vector<std::byte> bytes(size);
    write_poison(bytes, kBlock);
    CHECK(count_wrong(bytes, kBlock) == size);
  }
  std::vector<std::byte> one(4096);
  std::vector<std::byte> next(4096);
  write_poison(one, {5, 3, 2, 1});
  write_poison(next, {5, 4, 2, 1});
  CHECK(one != next);
}

TEST_CASE("blocks that differ in one respect differ in nearly every byte") {
  const auto bytes = data_of(4096, kBlock);
  for (const Block& other :
       {Block{6, 3, 2, 1}, Block{5, 4, 2, 1}, Block{5, 3, 1, 1}, Block{5, 3, 2, 2},
        Block{5, 3, 1, 2}, Block{5, 2, 3, 1}, Block{5, 3, 2, kEveryone}}) {
    CHECK(count_wrong(bytes, other) > 4000);
  }
  // A block that was shifted, by a word or less, is not itself.
  for (const std::size_t shift : {1u, 4u, 8u, 64u}) {
    const std::span<const std::byte> shifted = std::span(bytes).subspan(shift);
    CHECK(count_wrong(shifted, kBlock) > shifted.size() - shifted.size() / 50);
  }
}

TEST_CASE("a byte depends on its index and not on the size of the block") {
  const auto all = data_of(4097, kBlock);
  for (const std::size_t size : kSizes) {
    CHECK(data_of(size, kBlock) == std::vector(all.begin(), all.begin() + std::ptrdiff_t(size)));
  }
}

TEST_CASE("writing stays inside the span") {
  for (const std::size_t size : kSizes) {
    std::vector<std::byte> bytes(size + 16, std::byte{0x5a});
    write_data(std::span(bytes).subspan(8, size), kBlock);
    write_poison(std::span(bytes).subspan(8, size), kBlock);
    for (std::size_t i = 0; i < 8; ++i) {
      REQUIRE(bytes[i] == std::byte{0x5a});
      REQUIRE(bytes[8 + size + i] == std::byte{0x5a});
    }
  }
}

TEST_CASE("a write directly before or behind a guarded buffer is damage") {
  GuardedBuffer buffer(100, false);
  for (const std::size_t size : {100u, 0u, 1u, 64u}) {
    buffer.resize(size);
    CHECK(buffer.count_damage() == 0);
    std::byte* const begin = buffer.bytes().data();
    for (std::byte* const outside : {begin - 1, begin + size, begin - 4096, begin + size + 4095}) {
      *outside ^= std::byte{0x80};
      CHECK(buffer.count_damage() == 1);
      *outside ^= std::byte{0x80};
    }
    for (std::byte& inside : buffer.bytes()) inside ^= std::byte{0xff};
    CHECK(buffer.count_damage() == 0);
  }
}

TEST_CASE("buffers of one rank know what is due: nothing came, so all but the own data is wrong") {
  const auto wrong = [](const Options& options, int rank) {
    Buffers buffers(options, rank, 3);
    buffers.resize(100);
    buffers.prepare(7);
    return buffers.count_wrong(7);
  };
  CHECK(wrong(options_for(FERRY_ALLTOALL, false), 1) == 300);
  CHECK(wrong(options_for(FERRY_ALLGATHER, false), 1) == 300);
  CHECK(wrong(options_for(FERRY_ALLGATHER, true), 1) == 200);
  CHECK(wrong(options_for(FERRY_BCAST, false, 2), 1) == 100);
  CHECK(wrong(options_for(FERRY_BCAST, false, 2), 2) == 0);
  // In place, the own block of an alltoall stays; others hold what leaves, not what arrives.
  CHECK(wrong(options_for(FERRY_ALLTOALL, true), 1) > 190);
  CHECK(wrong(options_for(FERRY_ALLTOALL, true), 1) <= 200);
}

TEST_CASE("a changed send buffer is wrong, and so are the data of the iteration before") {
  Buffers buffers(options_for(FERRY_ALLTOALL, false), 0, 1);
  buffers.resize(100);
  buffers.prepare(1);
  auto* const sent = static_cast<std::byte*>(const_cast<void*>(buffers.send()));
  auto* const received = static_cast<std::byte*>(buffers.recv());
  std::copy(sent, sent + 100, received);
  CHECK(buffers.count_wrong(1) == 0);
  CHECK(buffers.count_wrong(2) > 190);
  sent[99] ^= std::byte{1};
  CHECK(buffers.count_wrong(1) == 1);
}

TEST_CASE("sizes") {
  CHECK(parse_size("0", "--min") == 0);
  CHECK(parse_size("17", "--min") == 17);
  CHECK(parse_size("64K", "--min") == 65536);
  CHECK(parse_size("3M", "--min") == 3145728);
  CHECK(parse_size("2G", "--min") == 2147483648u);
  for (const char* bad :
       {"", "K", "-1", "1.5K", "8k", "8KK", "8 ", "0x10", "99999999999999999999",
        "18446744073709551615G", "17179869184G"}) {
    CHECK_THROWS_AS((void)parse_size(bad, "--min"), UsageError);
  }
  using Sizes = std::vector<std::uint64_t>;
  CHECK(sizes_of({"--min", "8", "--max", "64"}) == Sizes{8, 16, 32, 64});
  CHECK(sizes_of({"--min", "9", "--max", "63"}) == Sizes{16, 32});
  CHECK(sizes_of({"--min", "17", "--max", "17"}) == Sizes{17});
  CHECK(sizes_of({"--min", "0", "--max", "0"}) == Sizes{0});
  CHECK(sizes_of({"--min", "0", "--max", "4"}) == Sizes{1, 2, 4});
  CHECK(sizes_of({}).front() == 8);
  CHECK(sizes_of({}).back() == 4194304);
  CHECK_THROWS_AS((void)sizes_of({"--min", "9", "--max", "15"}), UsageError);
  CHECK_THROWS_AS((void)sizes_of({"--min", "64", "--max", "8"}), UsageError);
}

TEST_CASE("a list of sizes keeps its order") {
  using Sizes = std::vector<std::uint64_t>;
  CHECK(sizes_of({"--sizes", "1M,8,64K"}) == Sizes{1048576, 8, 65536});
  CHECK(sizes_of({"--sizes", "17"}) == Sizes{17});
  CHECK_THROWS_AS((void)sizes_of({"--sizes", "8,,9"}), UsageError);
}

TEST_CASE("the bare copies move what must come to this rank, and nothing else") {
  for (const auto& [operation, rank, bytes] :
       {std::tuple{FERRY_ALLTOALL, 1, 300},
        {FERRY_ALLGATHER, 1, 300},
        {FERRY_BCAST, 0, 100},
        {FERRY_BCAST, 2, 0}}) {
    Options options = options_for(operation, false, operation == FERRY_BCAST ? 2 : 0);
    options.limit = true;
    Buffers buffers(options, rank, 3);
    buffers.resize(100);
    buffers.prepare(1);
    const std::size_t size = operation == FERRY_BCAST ? 100 : 300;
    const auto* received = static_cast<const std::byte*>(buffers.recv());
    const std::vector<std::byte> before(received, received + size);
    buffers.copy_bare();
    std::size_t changed = 0;
    for (std::size_t i = 0; i < size; ++i) changed += received[i] != before[i] ? 1 : 0;
    CHECK(changed <= static_cast<std::size_t>(bytes));
    CHECK(changed >= static_cast<std::size_t>(bytes) * 9 / 10);
  }
}

TEST_CASE("a picture has a line for Ferry, for each peer and for the limit") {
  const std::string row =
      R"({"collective":"bcast","form":"blocking","memory":"private","ranks":2,"bytes":8,)"
      R"("ferry_us_median":1.5,"peer_us_median":2.5,"limit_us_median":0.5,"peer":"it's"})";
  const std::string script = plot_script("[" + row + "]", "a'b.svg");
  CHECK(script.find("set terminal svg") != std::string::npos);
  CHECK(script.find("set output 'a''b.svg'\n") != std::string::npos);
  CHECK(script.find("8 1.5\n") != std::string::npos);
  CHECK(script.find("title 'Ferry', ") != std::string::npos);
  CHECK(script.find("title 'it''s', ") != std::string::npos);
  CHECK(script.find("title 'memcpy'\n") != std::string::npos);
  CHECK_THROWS_AS((void)plot_script("[]", "a.svg"), std::runtime_error);
  CHECK_THROWS_AS((void)plot_script("[1]", "a.svg"), std::runtime_error);
}

TEST_CASE("minimum and median") {
  CHECK(summarize({3, 1, 2}).minimum == 1);
  CHECK(summarize({3, 1, 2}).median == 2);
  CHECK(summarize({4, 1, 2, 3}).median == 2.5);
  CHECK(summarize({7}).median == 7);
}

TEST_CASE("ratio and bus bandwidth") {
  Result result;
  result.bytes = 1000;
  result.ferry.median = 1e-6;
  CHECK(!ratio(result).has_value());
  result.peer = Times{2e-6, 4e-6};
  CHECK(ratio(result).value() == doctest::Approx(4));
  const auto bandwidth = [&](ferry_operation operation, int ranks) {
    return bus_bandwidth(options_for(operation, false), ranks, result);
  };
  CHECK(bandwidth(FERRY_ALLTOALL, 4) == doctest::Approx(3));
  CHECK(bandwidth(FERRY_ALLGATHER, 4) == doctest::Approx(3));
  CHECK(bandwidth(FERRY_BCAST, 4) == doctest::Approx(1));
  CHECK(bandwidth(FERRY_ALLTOALL, 1) == 0);
}

TEST_CASE("reasons that differ in the size of their row only are one") {
  const auto result = [](std::uint64_t bytes, const char* path, const char* why) {
    Result row;
    row.bytes = bytes;
    row.path = path;
    row.why = why;
    return row;
  };
  const auto reasons = distinct_reasons(
      {result(8, "slots", "8 bytes fit into 4088 bytes"),
       result(16, "slots", "16 bytes fit into 4088 bytes"), result(32, "engine", "32 bytes"),
       result(64, "engine", "more than 64 bytes, and 64 bytes a block"),
       result(128, "engine", "more than 128 bytes, and 128 bytes a block")});
  REQUIRE(reasons.size() == 3);
  CHECK(reasons[0].text == "slots: N bytes fit into 4088 bytes");
  CHECK(reasons[0].first == 8);
  CHECK(reasons[0].last == 16);
  CHECK(reasons[1].text == "engine: N bytes");
  CHECK(reasons[1].first == 32);
  CHECK(reasons[1].last == 32);
  CHECK(reasons[2].text == "engine: more than N bytes, and N bytes a block");
  CHECK(reasons[2].last == 128);
}
