// SPDX-License-Identifier: MIT
// Calls of public reports (doc/field-cases.md) that no grid holds in this shape.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/pattern.hpp"
#include "support/world.hpp"

using namespace ferry::test;

namespace {

constexpr int kUntouched = -7;

int value_of(std::uint64_t round, int from, int to, std::size_t index) {
  const auto pair = static_cast<std::uint64_t>(from * 64 + to);
  return static_cast<int>(mix(round * 1000003 + pair * 8191 + index) >> 33);
}

std::size_t ranks() {
  return static_cast<std::size_t>(world().size);
}

// Of a pair, the same both ways. Half of the pairs have nothing.
MPI_Count elements_between(std::uint64_t round, int one, int other) {
  const auto low = static_cast<std::uint64_t>(std::min(one, other));
  const auto high = static_cast<std::uint64_t>(std::max(one, other));
  const std::uint64_t dice = mix(round * 4099 + low * 64 + high);
  return dice % 2 == 0 ? 0 : static_cast<MPI_Count>(1 + dice / 2 % 3000);
}

// Blocks with a gap of one element before each, as elements or as bytes.
struct InPlace {
  InPlace(std::uint64_t number, MPI_Aint unit) : round(number) {
    MPI_Aint at = 0;
    for (int peer = 0; peer < world().size; ++peer) {
      counts.push_back(elements_between(round, world().rank, peer));
      displs.push_back(++at * unit);
      at += static_cast<MPI_Aint>(counts.back());
    }
    data.assign(static_cast<std::size_t>(at + 1), kUntouched);
    expected = data;
    for (int peer = 0; peer < world().size; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      const auto first = static_cast<std::size_t>(displs[p] / unit);
      for (std::size_t i = 0; i < static_cast<std::size_t>(counts[p]); ++i) {
        data[first + i] = value_of(round, world().rank, peer, i);
        expected[first + i] = value_of(round, peer, world().rank, i);
      }
    }
  }
  std::uint64_t round;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displs;
  std::vector<int> data;
  std::vector<int> expected;
};

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

} // namespace

TEST_CASE("field: cases 2, 4: alltoallv in place, displacements in elements, empty pairs") {
  for (std::uint64_t round = 1; round <= 8; ++round) {
    InPlace job(round, 1);
    CHECK(
        ferry_alltoallv(
            MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, job.data.data(), job.counts.data(),
            job.displs.data(), MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(job.data == job.expected);
  }
}

TEST_CASE("field: cases 2, 4: alltoallw in place, displacements in bytes, empty pairs") {
  const std::vector<MPI_Datatype> types(ranks(), MPI_INT);
  for (std::uint64_t round = 1; round <= 8; ++round) {
    InPlace job(round, sizeof(int));
    CHECK(
        ferry_alltoallw(
            MPI_IN_PLACE, nullptr, nullptr, nullptr, job.data.data(), job.counts.data(),
            job.displs.data(), types.data(), MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(job.data == job.expected);
  }
}

TEST_CASE("field: cases 5, 6: allgatherv in place, blocks in reverse order with gaps") {
  const std::size_t n = ranks();
  for (const std::size_t count : {std::size_t{1}, std::size_t{3000}}) {
    const std::vector<MPI_Count> counts(n, static_cast<MPI_Count>(count));
    std::vector<MPI_Aint> displs(n);
    for (std::size_t i = 0; i < n; ++i) {
      displs[i] = static_cast<MPI_Aint>((n - 1 - i) * (count + 3));
    }
    std::vector<int> data(n * (count + 3), kUntouched);
    std::vector<int> expected = data;
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(displs[from]) + i;
        expected[at] = value_of(count, static_cast<int>(from), 0, i);
        if (static_cast<int>(from) == world().rank) data[at] = expected[at];
      }
    }
    CHECK(
        ferry_allgatherv(
            MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data.data(), counts.data(), displs.data(), MPI_INT,
            MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(data == expected);
  }
}

TEST_CASE("field: case 19: one rank has nothing to send or receive, and no buffers") {
  const std::size_t n = ranks();
  for (int idle = 0; idle < world().size; ++idle) {
    const bool nothing = world().rank == idle;
    std::vector<MPI_Count> counts(n, nothing ? 0 : 2);
    counts[static_cast<std::size_t>(idle)] = 0;
    std::vector<MPI_Aint> displs(n);
    std::iota(displs.begin(), displs.end(), 0);
    for (MPI_Aint& displ : displs) displ *= 2;
    std::vector<int> send(2 * n);
    std::vector<int> recv(2 * n, kUntouched);
    std::vector<int> expected = recv;
    for (std::size_t k = 0; k < 2 * n; ++k) {
      const int peer = static_cast<int>(k / 2);
      send[k] = value_of(1, world().rank, peer, k % 2);
      if (!nothing && peer != idle) expected[k] = value_of(1, peer, world().rank, k % 2);
    }
    CHECK(
        ferry_alltoallv(
            nothing ? nullptr : send.data(), counts.data(), displs.data(), MPI_INT,
            nothing ? nullptr : recv.data(), counts.data(), displs.data(), MPI_INT,
            MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(recv == expected);
  }
}

TEST_CASE("field: case 25: rows become columns with subarrays, sides that ranks do not divide") {
  for (const int side : {2 * world().size + 1, 71, 201}) {
    const int n = world().size;
    const auto first = [&](int rank) { return rank * side / n; };
    const int own = first(world().rank + 1) - first(world().rank);
    std::vector<int> rows(static_cast<std::size_t>(own * side));
    std::vector<int> columns(rows.size(), kUntouched);
    for (int i = 0; i < own * side; ++i) {
      rows[static_cast<std::size_t>(i)] = first(world().rank) * side + i;
    }
    const std::vector<MPI_Count> counts(ranks(), 1);
    const std::vector<MPI_Aint> displs(ranks(), 0);
    std::vector<MPI_Datatype> sent(ranks());
    std::vector<MPI_Datatype> received(ranks());
    for (int peer = 0; peer < n; ++peer) {
      const int theirs = first(peer + 1) - first(peer);
      const int whole[2][2] = {{own, side}, {side, own}};
      const int part[2][2] = {{own, theirs}, {theirs, own}};
      const int start[2][2] = {{0, first(peer)}, {first(peer), 0}};
      for (int way = 0; way < 2; ++way) {
        MPI_Datatype& type = (way == 0 ? sent : received)[static_cast<std::size_t>(peer)];
        MPI_Type_create_subarray(2, whole[way], part[way], start[way], MPI_ORDER_C, MPI_INT, &type);
        type = committed(type);
      }
    }
    CHECK(
        ferry_alltoallw(
            rows.data(), counts.data(), displs.data(), sent.data(), columns.data(), counts.data(),
            displs.data(), received.data(), MPI_COMM_WORLD) == MPI_SUCCESS);
    bool right = true;
    for (int i = 0; i < own * side; ++i) {
      const int expected = i / own * side + first(world().rank) + i % own;
      right = right && columns[static_cast<std::size_t>(i)] == expected;
    }
    CHECK(right);
    for (MPI_Datatype& type : sent) MPI_Type_free(&type);
    for (MPI_Datatype& type : received) MPI_Type_free(&type);
  }
}

TEST_CASE("field: case 26: elements of a send type that overlap") {
  MPI_Datatype three = MPI_DATATYPE_NULL;
  MPI_Datatype stepped = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_create_resized(three, 0, sizeof(int), &stepped);
  stepped = committed(stepped);
  for (const std::size_t count : {std::size_t{1}, std::size_t{4}, std::size_t{3000}}) {
    std::vector<int> send(count + 2);
    for (std::size_t i = 0; i < send.size(); ++i) send[i] = value_of(count, world().rank, 0, i);
    std::vector<int> recv(3 * count * ranks(), kUntouched);
    CHECK(
        ferry_allgather(
            send.data(), static_cast<MPI_Count>(count), stepped, recv.data(),
            static_cast<MPI_Count>(3 * count), MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    bool right = true;
    for (std::size_t k = 0; k < recv.size(); ++k) {
      const std::size_t at = k % (3 * count);
      const int from = static_cast<int>(k / (3 * count));
      right = right && recv[k] == value_of(count, from, 0, at / 3 + at % 3);
    }
    CHECK(right);
  }
  MPI_Type_free(&stepped);
  MPI_Type_free(&three);
}
