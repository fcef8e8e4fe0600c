// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "matrix/collective_grid.hpp"
#include "support/communicators.hpp"
#include "support/pattern.hpp"

using namespace ferry::test;

TEST_CASE("alltoallv: grid, blocking") {
  run_collective(Coll::alltoallv, Way::blocking);
}
TEST_CASE("alltoallv: grid, nonblocking") {
  run_collective(Coll::alltoallv, Way::nonblocking);
}
TEST_CASE("alltoallv: grid, persistent") {
  run_collective(Coll::alltoallv, Way::persistent);
}
TEST_CASE("alltoallw: grid, blocking") {
  run_collective(Coll::alltoallw, Way::blocking);
}
TEST_CASE("alltoallw: grid, nonblocking") {
  run_collective(Coll::alltoallw, Way::nonblocking);
}
TEST_CASE("alltoallw: grid, persistent") {
  run_collective(Coll::alltoallw, Way::persistent);
}

namespace {

constexpr std::size_t kLongest = 20000;

// What `from` sends to `to`: nothing, less than a slot holds, or more.
std::size_t bytes_between(int from, int to, std::uint64_t round) {
  const std::uint64_t choice = mix(round * 64 + static_cast<std::uint64_t>(from * 8 + to));
  constexpr std::size_t kChoices[] = {0, 0, 1, 300, 4064, 4065, kLongest};
  return kChoices[choice % std::size(kChoices)];
}

// Blocks of a rank, each at an address of its own that no other block has anything to do with.
struct Blocks {
  explicit Blocks(int ranks) : data(static_cast<std::size_t>(ranks)) {
    for (auto& block : data) block.resize(kLongest);
  }
  std::vector<std::vector<unsigned char>> data;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displs;
  std::vector<MPI_Datatype> types;

  void describe(std::size_t block, std::size_t bytes) {
    MPI_Aint address = 0;
    MPI_Get_address(data[block].data(), &address);
    const int length = static_cast<int>(bytes);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(1, &length, &address, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    types.push_back(type);
    counts.push_back(1);
    displs.push_back(0);
  }
  void free() {
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
  }
};

} // namespace

TEST_CASE("alltoallw: absolute addresses at MPI_BOTTOM, uneven and empty pairs") {
  const Comm& comm = zoo()[1];
  const int me = comm.rank();
  for (std::uint64_t round = 1; round <= 6; ++round) {
    Blocks send(comm.size());
    Blocks recv(comm.size());
    for (int peer = 0; peer < comm.size(); ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      send.describe(at, bytes_between(me, peer, round));
      recv.describe(at, bytes_between(peer, me, round));
      fill(send.data[at].data(), kLongest, {round, me, peer});
      poison(recv.data[at].data(), kLongest, round);
    }
    ferry_request request = FERRY_REQUEST_NULL;
    CHECK(
        ferry_ialltoallw(
            MPI_BOTTOM, send.counts.data(), send.displs.data(), send.types.data(), MPI_BOTTOM,
            recv.counts.data(), recv.displs.data(), recv.types.data(), comm.get(),
            &request) == MPI_SUCCESS);
    send.free();
    recv.free();
    CHECK(ferry_wait(&request) == MPI_SUCCESS);
    for (int peer = 0; peer < comm.size(); ++peer) {
      const auto& block = recv.data[static_cast<std::size_t>(peer)];
      const std::size_t bytes = bytes_between(peer, me, round);
      CHECK(!first_difference(block.data(), bytes, {round, peer, me}));
      std::vector<unsigned char> rest(kLongest - bytes);
      poison(rest.data(), rest.size(), round);
      CHECK(std::equal(rest.begin(), rest.end(), block.end() - static_cast<long>(rest.size())));
    }
  }
}

TEST_CASE("alltoallv: a persistent plan reads its arrays at *_init only") {
  const Comm& comm = zoo()[0];
  const auto n = static_cast<std::size_t>(comm.size());
  std::vector<MPI_Count> counts(n, 2);
  std::vector<MPI_Aint> displs(n);
  for (std::size_t i = 0; i < n; ++i) displs[i] = static_cast<MPI_Aint>(3 * (n - 1 - i));
  std::vector<int> send(3 * n, -1);
  std::vector<int> recv(3 * n, -1);
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK(
      ferry_alltoallv_init(
          send.data(), counts.data(), displs.data(), MPI_INT, recv.data(), counts.data(),
          displs.data(), MPI_INT, comm.get(), MPI_INFO_NULL, &request) == MPI_SUCCESS);
  const std::vector<MPI_Aint> places = displs;
  counts.assign(n, 1 << 20);
  displs.assign(n, 1 << 20);
  for (int start = 1; start < 4; ++start) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < 2; ++k) {
        send[static_cast<std::size_t>(places[i]) + k] =
            start * 10000 + comm.rank() * 100 + static_cast<int>(2 * i + k);
      }
    }
    CHECK(ferry_start(&request) == MPI_SUCCESS);
    CHECK(ferry_wait(&request) == MPI_SUCCESS);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(places[i]);
      CHECK(recv[at] == start * 10000 + static_cast<int>(i) * 100 + 2 * comm.rank());
      CHECK(recv[at + 1] == start * 10000 + static_cast<int>(i) * 100 + 2 * comm.rank() + 1);
      CHECK(recv[at + 2] == -1);
    }
  }
  CHECK(ferry_request_free(&request) == MPI_SUCCESS);
}
