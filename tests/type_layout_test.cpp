// SPDX-License-Identifier: MIT
// One rank. The datatype engine of the MPI below is a second opinion here, and MPI_Pack of it the
// packed form that the standard asks for; the oracle is the list of bytes of
// support/random_type.hpp.
#include "lib/api/type_layout.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "support/random_type.hpp"

namespace core = ferry::core;
using core::Layout;
using core::type_layout;
using ferry::test::Dice;
using ferry::test::MappedType;
using ferry::test::RandomTypes;

namespace {

using Bytes = std::vector<std::byte>;
using Places = std::vector<std::int64_t>;

constexpr std::uint64_t kTypes = 6000;

Layout layout_of(MPI_Count count, MPI_Datatype type) {
  return type_layout(MPI_COMM_WORLD, count, type, "the buffer");
}

Places places_of(const MappedType& type, int count) {
  Places places;
  const std::int64_t extent = ferry::test::extent_of(type.type);
  for (int i = 0; i < count; ++i) {
    for (const std::int64_t place : type.places) places.push_back(place + i * extent);
  }
  return places;
}

bool overlaps(Places places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

Bytes random_bytes(std::size_t bytes, Dice& dice) {
  Bytes result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(dice.word());
  return result;
}

// One random type at some count, with memory around all that it touches.
struct Sample {
  explicit Sample(std::uint64_t seed) : dice(seed) {
    RandomTypes types(dice);
    type = types.make(static_cast<int>(dice.between(0, 4)));
    count = static_cast<int>(dice.between(0, 4));
    places = places_of(type, count);
    const std::int64_t low = places.empty() ? 0 : *std::min_element(places.begin(), places.end());
    const std::int64_t high = places.empty() ? 0 : *std::max_element(places.begin(), places.end());
    lower = low;
    upper = places.empty() ? low : high + 1;
    memory = random_bytes(static_cast<std::size_t>(high - low + 1 + 2 * kEdge), dice);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  ~Sample() { type.free(); }

  [[nodiscard]] std::byte* base(Bytes& of) const { return of.data() + kEdge - lower; }
  [[nodiscard]] Bytes packed() {
    Bytes result;
    for (const std::int64_t place : places) result.push_back(base(memory)[place]);
    return result;
  }
  [[nodiscard]] Bytes unpacked(const Bytes& packed) {
    Bytes result = memory;
    for (std::size_t i = 0; i < packed.size(); ++i) base(result)[places[i]] = packed[i];
    return result;
  }

  static constexpr std::int64_t kEdge = 64;
  Dice dice;
  MappedType type;
  int count = 0;
  Places places;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes memory;
};

// The oracle is right about MPI: its own packing agrees.
bool mpi_agrees(Sample& sample) {
  Bytes packed(sample.places.size() + 1);
  int position = 0;
  MPI_Pack(
      sample.base(sample.memory), sample.count, sample.type.type, packed.data(),
      static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  packed.resize(static_cast<std::size_t>(position));
  if (packed != sample.packed()) return false;
  if (overlaps(sample.places)) return true;
  const Bytes fresh = random_bytes(sample.places.size(), sample.dice);
  Bytes target = sample.memory;
  position = 0;
  MPI_Unpack(
      fresh.data(), static_cast<int>(fresh.size()), &position, sample.base(target), sample.count,
      sample.type.type, MPI_COMM_SELF);
  return target == sample.unpacked(fresh);
}

void check_layout(Sample& sample) {
  const Layout layout = layout_of(sample.count, sample.type.type);
  REQUIRE(layout.bytes() == sample.places.size());
  CHECK(layout.count == static_cast<std::uint64_t>(sample.count));
  CHECK(layout.element_bytes == sample.type.places.size());
  CHECK(layout.extent == ferry::test::extent_of(sample.type.type));
  if (!sample.places.empty()) {
    CHECK(layout.lower() == sample.lower);
    CHECK(layout.upper() == sample.upper);
  }
  bool side_by_side = true;
  for (std::size_t i = 1; i < sample.places.size(); ++i) {
    side_by_side = side_by_side && sample.places[i] == sample.places[i - 1] + 1;
  }
  CHECK(layout.contiguous() == side_by_side);
  Bytes packed(sample.places.size());
  core::pack(layout, sample.base(sample.memory), 0, packed.size(), packed.data());
  CHECK(packed == sample.packed());
  // In two parts, and the second first.
  const auto cut =
      static_cast<std::size_t>(sample.dice.between(0, static_cast<std::int64_t>(packed.size())));
  const Bytes fresh = random_bytes(packed.size(), sample.dice);
  if (overlaps(sample.places)) return;
  Bytes target = sample.memory;
  core::unpack(layout, sample.base(target), cut, fresh.size() - cut, fresh.data() + cut);
  core::unpack(layout, sample.base(target), 0, cut, fresh.data());
  CHECK(target == sample.unpacked(fresh));
}

core::ErrorKind kind_of(MPI_Count count, MPI_Datatype type, const std::string& text) {
  try {
    static_cast<void>(layout_of(count, type));
  } catch (const core::Failure& failure) {
    CHECK(failure.status().cause.find(text) != std::string::npos);
    CHECK(failure.status().remedy != "");
    return failure.status().kind;
  }
  return core::ErrorKind::none;
}

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

MPI_Datatype vector_type(int count, int length, int stride, MPI_Datatype of) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, length, stride, of, &type);
  return committed(type);
}

} // namespace

TEST_CASE("type layout: random nested types against MPI_Pack and a list of bytes") {
  const std::uint64_t first = ferry::test::first_seed(1);
  int strided = 0;
  int compared = 0;
  for (std::uint64_t seed = first; seed < first + kTypes; ++seed) {
    CAPTURE(seed);
    Sample sample(seed);
    if (!sample.type.doubtful) {
      CHECK(mpi_agrees(sample));
      ++compared;
    }
    check_layout(sample);
    strided += layout_of(sample.count, sample.type.type).contiguous() ? 0 : 1;
  }
  CHECK(strided > static_cast<int>(kTypes / 4));
  CHECK(compared > static_cast<int>(kTypes / 3));
  std::printf(
      "types from seed %llu: %llu, %d of them not contiguous, %d compared with MPI_Pack\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(kTypes), strided,
      compared);
}

TEST_CASE("type layout: predefined types, pairs with their gaps") {
  CHECK(layout_of(7, MPI_DOUBLE).contiguous());
  CHECK(layout_of(7, MPI_DOUBLE).bytes() == 56);
  CHECK(layout_of(7, MPI_2INT).contiguous());
  const Layout pair = layout_of(3, MPI_DOUBLE_INT);
  REQUIRE(pair.map != nullptr);
  CHECK(pair.map->runs == std::vector<core::Run>{{0, 12, 1, 0}});
  CHECK(pair.extent == 16);
  CHECK(layout_of(1, MPI_DOUBLE_INT).contiguous());
  const Layout gap = layout_of(1, MPI_SHORT_INT);
  REQUIRE(gap.map != nullptr);
  CHECK(gap.map->runs == std::vector<core::Run>{{0, 2, 1, 0}, {4, 4, 1, 0}});
  CHECK(layout_of(1, MPI_LONG_DOUBLE_INT).upper() == 20);
}

TEST_CASE("type layout: pieces that touch are contiguous, wherever they begin") {
  MPI_Datatype touching = vector_type(4, 3, 3, MPI_INT);
  CHECK(layout_of(5, touching).contiguous());
  MPI_Datatype shifted = MPI_DATATYPE_NULL;
  const int places[] = {5, 6, 7};
  MPI_Type_create_indexed_block(3, 1, places, MPI_INT, &shifted);
  shifted = committed(shifted);
  const Layout one = layout_of(1, shifted);
  CHECK(one.contiguous());
  CHECK(one.offset == 20);
  CHECK(one.lower() == 20);
  CHECK(layout_of(2, shifted).offset == 20);
  CHECK(layout_of(2, shifted).contiguous());
  MPI_Datatype padded = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(shifted, 0, 32, &padded);
  padded = committed(padded);
  CHECK(layout_of(1, padded).contiguous());
  CHECK_FALSE(layout_of(2, padded).contiguous());
  const auto run = layout_of(2, padded).single_run();
  REQUIRE(run);
  CHECK(*run == core::Run{20, 12, 2, 32});
  for (MPI_Datatype* type : {&touching, &shifted, &padded}) MPI_Type_free(type);
}

TEST_CASE("type layout: types of no size, case 28") {
  MPI_Datatype nothing = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(nothing, -8, 16, &resized);
  MPI_Datatype no_members = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(0, nullptr, nullptr, nullptr, &no_members);
  MPI_Datatype no_blocks = vector_type(3, 0, 5, MPI_DOUBLE);
  for (MPI_Datatype* type : {&nothing, &resized, &no_members, &no_blocks}) {
    MPI_Type_commit(type);
    const Layout layout = layout_of(1000, *type);
    CHECK(layout.bytes() == 0);
    CHECK(layout.contiguous());
    CHECK(layout.lower() == layout.upper());
    core::pack(layout, nullptr, 0, 0, nullptr);
    MPI_Type_free(type);
  }
}

TEST_CASE("type layout: what is refused") {
  CHECK(kind_of(-1, MPI_INT, "the count of the buffer is -1") == core::ErrorKind::count);
  CHECK(kind_of(1, MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL") == core::ErrorKind::type);
  CHECK(kind_of(0, MPI_DATATYPE_NULL, "") == core::ErrorKind::none);
  CHECK(layout_of(0, MPI_DATATYPE_NULL).bytes() == 0);
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &raw);
  CHECK(kind_of(1, raw, "the type of the buffer is not committed") == core::ErrorKind::type);
  MPI_Type_commit(&raw);
  CHECK(kind_of(1, raw, "") == core::ErrorKind::none);
  MPI_Type_free(&raw);
}

TEST_CASE("type layout: made once for a type, and gone with it") {
  std::weak_ptr<const core::TypeMap> gone;
  // A handle that is used again is another type.
  for (int stride = 2; stride < 20; ++stride) {
    MPI_Datatype type = vector_type(3, 1, stride, MPI_INT);
    const Layout layout = layout_of(2, type);
    REQUIRE(layout.map != nullptr);
    CHECK(layout.map->runs.front().stride == 4 * stride);
    CHECK(layout_of(5, type).map == layout.map);
    MPI_Datatype copy = MPI_DATATYPE_NULL;
    MPI_Type_dup(type, &copy);
    CHECK(layout_of(2, copy).map != layout.map);
    gone = layout_of(2, copy).map;
    MPI_Type_free(&copy);
    CHECK(gone.expired());
    MPI_Type_free(&type);
    CHECK(layout.map->runs.front().stride == 4 * stride);
    CHECK(layout.map.use_count() == 1);
  }
}

TEST_CASE("type layout: large types stay small") {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype record = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &record);
  MPI_Datatype many = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1000000000, record, &many);
  many = committed(many);
  const Layout records = layout_of(1, many);
  CHECK(records.map->runs.size() == 2);
  CHECK(records.bytes() == 12000000000);
  CHECK(records.upper() == 16000000000);
  MPI_Datatype matrix = MPI_DATATYPE_NULL;
  MPI_Datatype column = vector_type(100000, 1, 200000, MPI_DOUBLE);
  MPI_Type_create_hvector(100000, 1, 8, column, &matrix);
  matrix = committed(matrix);
  const Layout transposed = layout_of(1, matrix);
  CHECK(transposed.map->runs.size() == 1);
  CHECK(transposed.bytes() == 80000000000);
  for (MPI_Datatype* type : {&record, &many, &column, &matrix}) MPI_Type_free(type);
}
