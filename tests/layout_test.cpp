// SPDX-License-Identifier: MIT
#include "lib/memory/layout.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "lib/memory/type_map.hpp"
#include "support/seeded.hpp"

using ferry::test::Dice;
namespace core = ferry::core;
using core::Layout;
using core::Pieces;

namespace {

// The oracle: where each packed byte lies.
using Places = std::vector<std::int64_t>;

struct Both {
  Pieces pieces;
  Places places;

  void append(const Both& other, std::int64_t shift) {
    pieces.append(other.pieces, shift);
    for (const std::int64_t place : other.places) places.push_back(place + shift);
  }
  [[nodiscard]] Both repeated(std::uint64_t count, std::int64_t stride) const {
    Both result{pieces.repeated(count, stride), {}};
    for (std::uint64_t i = 0; i < count; ++i) {
      for (const std::int64_t place : places) {
        result.places.push_back(place + static_cast<std::int64_t>(i) * stride);
      }
    }
    return result;
  }
};

Both leaf(std::uint64_t bytes) {
  Both result{Pieces(bytes), {}};
  for (std::uint64_t i = 0; i < bytes; ++i) result.places.push_back(static_cast<std::int64_t>(i));
  return result;
}

// No two bytes at one place, so that unpacking has one result.
bool overlaps(Places places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

constexpr std::uint64_t kLeaves[] = {1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 32, 64, 65};
constexpr std::size_t kMostBytes = 600;

Both random_pieces(Dice& dice, int depth) {
  if (depth == 0) return leaf(dice.pick(kLeaves));
  Both result;
  const Both part = random_pieces(dice, depth - 1);
  const auto span = static_cast<std::int64_t>(part.places.size());
  if (dice.one_in(2)) {
    const std::int64_t stride = dice.one_in(2) ? span : dice.between(-span - 9, 2 * span + 9);
    result = part.repeated(static_cast<std::uint64_t>(dice.between(0, 6)), stride);
  } else {
    std::int64_t at = dice.between(-20, 20);
    for (std::int64_t i = dice.between(1, 20); i > 0; --i) {
      const Both& next = dice.one_in(3) ? leaf(dice.pick(kLeaves)) : part;
      result.append(next, at);
      const auto length = static_cast<std::int64_t>(next.places.size());
      at += dice.one_in(2) ? length : dice.between(-3, 40);
    }
  }
  return result.places.size() <= kMostBytes ? result : part;
}

struct Sample {
  Layout layout;
  Places places;
};

Sample random_sample(Dice& dice) {
  const Both both = random_pieces(dice, static_cast<int>(dice.between(0, 4)));
  const auto bytes = static_cast<std::int64_t>(both.places.size());
  const auto count = static_cast<std::uint64_t>(dice.between(1, 4));
  const std::int64_t extent = dice.one_in(3) ? bytes : dice.between(-bytes, 3 * bytes);
  Pieces pieces = both.pieces;
  return {
      {count, both.places.size(), extent, 0, std::move(pieces).map()},
      both.repeated(count, extent).places};
}

// Memory around the places of a sample; base is what a caller would pass.
struct Memory {
  Memory(const Sample& sample, Dice& dice) {
    const auto [low, high] = std::minmax_element(sample.places.begin(), sample.places.end());
    constexpr std::int64_t kEdge = 32;
    const std::int64_t first = sample.places.empty() ? 0 : *low;
    const std::int64_t last = sample.places.empty() ? 0 : *high;
    bytes.resize(static_cast<std::size_t>(last - first + 1 + 2 * kEdge));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(dice.word());
    shift = kEdge - first;
  }
  [[nodiscard]] std::byte* base() { return bytes.data() + shift; }
  [[nodiscard]] std::byte& at(std::int64_t place) {
    return bytes[static_cast<std::size_t>(place + shift)];
  }

  std::vector<std::byte> bytes;
  std::int64_t shift = 0;
};

std::vector<std::byte> packed_by_oracle(const Sample& sample, Memory& memory) {
  std::vector<std::byte> packed;
  for (const std::int64_t place : sample.places) packed.push_back(memory.at(place));
  return packed;
}

constexpr std::byte kPoison{0xa7};

// Bytes [skip, skip + bytes) and no other.
bool packs(const Sample& sample, Memory& memory, std::size_t skip, std::size_t bytes) {
  const std::vector<std::byte> all = packed_by_oracle(sample, memory);
  std::vector<std::byte> packed(bytes + 2, kPoison);
  core::pack(sample.layout, memory.base(), skip, bytes, packed.data() + 1);
  return packed.front() == kPoison && packed.back() == kPoison &&
         std::equal(packed.begin() + 1, packed.end() - 1, all.begin() + static_cast<long>(skip));
}

bool unpacks(
    const Sample& sample, Memory& memory, std::size_t skip, std::size_t bytes, Dice& dice) {
  std::vector<std::byte> packed(bytes);
  for (std::byte& byte : packed) byte = static_cast<std::byte>(dice.word());
  Memory expected = memory;
  for (std::size_t i = 0; i < bytes; ++i) expected.at(sample.places[skip + i]) = packed[i];
  core::unpack(sample.layout, memory.base(), skip, bytes, packed.data());
  return memory.bytes == expected.bytes;
}

bool bounds_fit(const Sample& sample) {
  if (sample.places.empty()) return sample.layout.lower() == sample.layout.upper();
  const auto [low, high] = std::minmax_element(sample.places.begin(), sample.places.end());
  return sample.layout.lower() == *low && sample.layout.upper() == *high + 1;
}

bool single_run_fits(const Sample& sample) {
  const auto run = sample.layout.single_run();
  if (!run) return true;
  Places places;
  for (std::uint64_t i = 0; i < run->repeats; ++i) {
    for (std::uint64_t k = 0; k < run->bytes; ++k) {
      places.push_back(
          run->offset + static_cast<std::int64_t>(i) * run->stride + static_cast<std::int64_t>(k));
    }
  }
  return places == sample.places;
}

bool side_by_side(const Places& places) {
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] != places[i - 1] + 1) return false;
  }
  return true;
}

} // namespace

TEST_CASE("layout: random layouts, every skip, against a list of bytes") {
  const std::uint64_t first = ferry::test::first_seed(1);
  std::uint64_t splits = 0;
  for (std::uint64_t seed = first; seed < first + 3000; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Sample sample = random_sample(dice);
    const std::size_t all = sample.places.size();
    REQUIRE(sample.layout.bytes() == all);
    Memory memory(sample, dice);
    CHECK(bounds_fit(sample));
    CHECK(single_run_fits(sample));
    const bool writes = !overlaps(sample.places);
    const std::size_t step = all > 200 ? all / 97 : 1;
    for (std::size_t skip = 0; skip <= all; skip += step, ++splits) {
      const auto bytes =
          static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(all - skip)));
      REQUIRE(packs(sample, memory, skip, bytes));
      REQUIRE(packs(sample, memory, skip, all - skip));
      if (writes) REQUIRE(unpacks(sample, memory, skip, bytes, dice));
    }
    if (writes) CHECK(unpacks(sample, memory, 0, all, dice));
  }
  std::printf(
      "layouts from seed %llu: 3000, %llu beginnings\n", static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(splits));
}

TEST_CASE("layout: from one random layout to another") {
  const std::uint64_t first = ferry::test::first_seed(1);
  int copied = 0;
  for (std::uint64_t seed = first; copied < 500; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Sample from = random_sample(dice);
    Sample to = random_sample(dice);
    if (overlaps(to.places) || from.places.empty() || to.places.empty()) continue;
    // As many elements of each as give the same number of bytes, more than one stage of the copy.
    const auto widen = [](Sample& sample, std::uint64_t bytes) {
      Places wide;
      const std::int64_t low = sample.layout.lower();
      const std::int64_t step = sample.layout.upper() - low;
      const std::uint64_t one = sample.places.size();
      for (std::uint64_t i = 0; i < bytes / one; ++i) {
        for (const std::int64_t place : sample.places) {
          wide.push_back(place + static_cast<std::int64_t>(i) * step);
        }
      }
      sample.places = wide;
      Pieces pieces;
      for (const std::int64_t place : wide) pieces.append(Pieces(1), place);
      sample.layout = {1, bytes, step, 0, std::move(pieces).map()};
    };
    const std::uint64_t bytes = from.places.size() * to.places.size();
    if (bytes > 60000) continue;
    ++copied;
    widen(from, bytes);
    widen(to, bytes);
    Memory source(from, dice);
    Memory target(to, dice);
    Memory expected = target;
    for (std::size_t i = 0; i < bytes; ++i) {
      expected.at(to.places[i]) = source.at(from.places[i]);
    }
    core::copy_layout(to.layout, target.base(), from.layout, source.base());
    CHECK(target.bytes == expected.bytes);
  }
}

TEST_CASE("layout: bytes side by side are one piece, in whatever pieces they came") {
  const std::uint64_t first = ferry::test::first_seed(1);
  int found = 0;
  for (std::uint64_t seed = first; seed < first + 20000; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Both both = random_pieces(dice, static_cast<int>(dice.between(1, 4)));
    CHECK(both.pieces.one_piece() == side_by_side(both.places));
    found += both.pieces.one_piece() ? 1 : 0;
  }
  CHECK(found > 500);
  CHECK(found < 19000);
}

TEST_CASE("layout: repetitions stay short") {
  Pieces pair(4);
  pair.append(Pieces(8), 8);
  // A struct of an int and a double, a thousand million times.
  const std::uint64_t count = 1000000000;
  const auto map = pair.repeated(count, 16).map();
  CHECK(map->runs.size() == 2);
  CHECK(map->repeats == count);
  CHECK(map->upper == 16000000000);
  // A column of a matrix, a plane of a cube.
  CHECK(Pieces(8).repeated(1000000, 24).map()->runs.size() == 1);
  CHECK(Pieces(8).repeated(100, 8).repeated(1000, 1600).map()->runs.size() == 1);
  CHECK(Pieces(8).repeated(10, 16).repeated(1000, 160).map()->runs.size() == 1);
  CHECK(Pieces(8).repeated(10, 16).repeated(1000, 1600).map()->runs.size() == 1000);
  CHECK(Pieces(8).repeated(10, 16).repeated(5000, 1600).map()->runs.size() == 1);
  // Equal blocks, one by one, and blocks that come in parts.
  Pieces list;
  for (std::int64_t i = 0; i < 1000; ++i) {
    list.append(Pieces(3), i * 10);
    list.append(Pieces(5), i * 10 + 3);
  }
  const auto merged = std::move(list).map();
  REQUIRE(merged->runs.size() == 1);
  CHECK(merged->runs.front() == core::Run{0, 8, 1000, 10});
}

TEST_CASE("layout: a long repetition of many runs, from anywhere") {
  Both part;
  for (std::int64_t i = 0; i < 40; ++i)
    part.append(leaf(1 + static_cast<std::uint64_t>(i % 5)), i * 7 + i % 2);
  Both both = part.repeated(300, 400);
  Pieces pieces = both.pieces;
  const auto map = std::move(pieces).map();
  CHECK(map->repeats == 300);
  REQUIRE(map->starts.size() == map->runs.size());
  Sample sample;
  sample.places = both.repeated(2, 130000).places;
  sample.layout = {2, both.places.size(), 130000, 0, map};
  Dice dice(1);
  Memory memory(sample, dice);
  const auto all = static_cast<std::int64_t>(sample.places.size());
  for (int i = 0; i < 200; ++i) {
    const std::int64_t skip = dice.between(0, all);
    const std::int64_t bytes = dice.between(0, all - skip);
    REQUIRE(packs(sample, memory, static_cast<std::size_t>(skip), static_cast<std::size_t>(bytes)));
  }
  // A repetition that is part of a list is written out.
  both.append(leaf(3), -10);
  Both list;
  list.append(both, 5);
  list.append(part.repeated(200, -300), 500000);
  Pieces long_list = list.pieces;
  Sample other;
  other.places = list.places;
  other.layout = {1, list.places.size(), 0, 0, std::move(long_list).map()};
  CHECK(other.layout.map->repeats == 1);
  Memory again(other, dice);
  CHECK(packs(other, again, 0, other.places.size()));
  CHECK(bounds_fit(other));
}

TEST_CASE("layout: every other double, any number of them") {
  Dice dice(1);
  for (std::uint64_t count = 1; count <= 70; ++count) {
    const Both both = leaf(8).repeated(count, 16);
    Pieces pieces = both.pieces;
    Sample sample;
    sample.places = both.places;
    sample.layout = {1, both.places.size(), 0, 0, std::move(pieces).map()};
    Memory memory(sample, dice);
    for (std::size_t skip = 0; skip < std::min<std::size_t>(both.places.size(), 20); ++skip) {
      REQUIRE(packs(sample, memory, skip, both.places.size() - skip));
      REQUIRE(unpacks(sample, memory, skip, both.places.size() - skip, dice));
    }
  }
}

TEST_CASE("layout: counts and places beyond 32 bits") {
  const std::uint64_t count = (std::uint64_t{1} << 33) + 3;
  const std::byte data[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  // All elements lie at the same place.
  const Layout same{count, 3, 0, 0, Pieces(3).map()};
  std::byte packed[7] = {};
  core::pack(same, data, 3 * count - 7, 7, packed);
  const std::byte expected[7] = {data[2], data[0], data[1], data[2], data[0], data[1], data[2]};
  CHECK(std::memcmp(packed, expected, 7) == 0);
  Pieces two(1);
  two.append(Pieces(1), 2);
  const Layout pairs{count, 2, 0, 0, std::move(two).map()};
  core::pack(pairs, data, 2 * count - 3, 3, packed);
  CHECK(packed[0] == data[2]);
  CHECK(packed[1] == data[0]);
  CHECK(packed[2] == data[2]);
  const Layout wide{count, 3, -100, 0, Pieces(3).map()};
  CHECK(wide.lower() == -100 * static_cast<std::int64_t>(count - 1));
  CHECK(wide.upper() == 3);
}

TEST_CASE("layout: contiguous ones begin at their offset; no bytes touch nothing") {
  std::byte data[8] = {};
  for (int i = 0; i < 8; ++i) data[i] = static_cast<std::byte>(i);
  Layout layout = core::contiguous_layout(2, 2);
  layout.offset = 3;
  CHECK(layout.lower() == 3);
  CHECK(layout.upper() == 7);
  std::byte packed[4] = {};
  core::pack(layout, data, 1, 3, packed);
  CHECK(std::memcmp(packed, data + 4, 3) == 0);
  core::unpack(layout, data, 2, 2, packed);
  CHECK(std::memcmp(data + 5, packed, 2) == 0);
  core::pack(core::contiguous_layout(0, 8), nullptr, 0, 0, nullptr);
  const Layout empty{0, 4, 16, 0, Pieces(4).map()};
  CHECK(empty.lower() == empty.upper());
  core::pack(empty, nullptr, 0, 0, nullptr);
  const Layout nothing{5, 0, 16, 0, Pieces().map()};
  CHECK(nothing.lower() == nothing.upper());
  core::copy_layout(nothing, nullptr, empty, nullptr);
}
