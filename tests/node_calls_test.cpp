// SPDX-License-Identifier: MIT
// Calls on a communicator of several nodes, which FERRY_NODES pretends: the first ones, the forms
// beside each other, what is too long for its frame, and calls that do not fit together.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "support/communicators.hpp"
#include "support/errors.hpp"
#include "support/pattern.hpp"

using namespace ferry::test;

namespace {

std::string last_way(const Comm& comm) {
  char text[512] = {};
  CHECK(ferry_comm_explain(comm.get(), text, sizeof text) == MPI_SUCCESS);
  return text;
}

std::string way_of(ferry_request request) {
  char text[512] = {};
  CHECK(ferry_explain(request, text, sizeof text) == MPI_SUCCESS);
  return text;
}

bool begins(const std::string& text, const char* with) {
  return text.rfind(with, 0) == 0;
}

// An alltoallv with blocks of one size, but for the one from `longer_from` to the last rank.
class Exchange {
 public:
  Exchange(const Comm& comm, std::size_t bytes, int longer_from, std::size_t longer)
      : comm_(comm), n_(static_cast<std::size_t>(comm.size())) {
    const int last = comm.size() - 1;
    for (int peer = 0; peer < comm.size(); ++peer) {
      const bool to_last = comm.rank() == longer_from && peer == last;
      const bool at_last = comm.rank() == last && peer == longer_from;
      out_.push_back(static_cast<MPI_Count>(to_last ? longer : bytes));
      in_.push_back(static_cast<MPI_Count>(at_last ? longer : bytes));
      at_.push_back(static_cast<MPI_Aint>(static_cast<std::size_t>(peer) * (bytes + longer)));
    }
    send_.resize(n_ * (bytes + longer));
    recv_.resize(n_ * (bytes + longer));
  }

  void run(std::uint64_t iteration) {
    poison(recv_.data(), recv_.size(), iteration);
    for (std::size_t peer = 0; peer < n_; ++peer) {
      fill(
          send_.data() + at_[peer], static_cast<std::size_t>(out_[peer]),
          {iteration, comm_.rank(), static_cast<int>(peer)});
    }
    CHECK(
        ferry_alltoallv(
            send_.data(), out_.data(), at_.data(), MPI_BYTE, recv_.data(), in_.data(), at_.data(),
            MPI_BYTE, comm_.get()) == MPI_SUCCESS);
    for (std::size_t peer = 0; peer < n_; ++peer) {
      CHECK_FALSE(first_difference(
          recv_.data() + at_[peer], static_cast<std::size_t>(in_[peer]),
          {iteration, static_cast<int>(peer), comm_.rank()}));
    }
  }

 private:
  const Comm& comm_;
  std::size_t n_;
  std::vector<MPI_Count> out_;
  std::vector<MPI_Count> in_;
  std::vector<MPI_Aint> at_;
  std::vector<unsigned char> send_;
  std::vector<unsigned char> recv_;
};

} // namespace

TEST_CASE("nodes, calls: non-blocking ones go over nodes from the first on, several at once") {
  const Comm comm = duplicate();
  const auto n = static_cast<std::size_t>(comm.size());
  constexpr std::size_t kLong = 9000; // by the MPI below, between others
  const int own = comm.rank() + 1;
  int sum = 0;
  std::vector<int> all(n);
  std::vector<unsigned char> send(n * kLong, static_cast<unsigned char>(comm.rank()));
  std::vector<unsigned char> recv(n * kLong);
  ferry_request requests[4] = {};
  CHECK(
      ferry_iallgather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, comm.get(), &requests[0]) ==
      MPI_SUCCESS);
  CHECK(
      ferry_ialltoall(
          send.data(), kLong, MPI_BYTE, recv.data(), kLong, MPI_BYTE, comm.get(), &requests[1]) ==
      MPI_SUCCESS);
  CHECK(ferry_iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm.get(), &requests[2]) == MPI_SUCCESS);
  CHECK(ferry_ibarrier(comm.get(), &requests[3]) == MPI_SUCCESS);
  int open = 4;
  while (open > 0) {
    for (ferry_request& request : requests) {
      if (request == FERRY_REQUEST_NULL) continue;
      const bool below = &request == &requests[1];
      const std::string way = way_of(request);
      int done = 0;
      CHECK(ferry_test(&request, &done) == MPI_SUCCESS);
      if (done == 0) continue;
      --open;
      // Told before the last look, it may still have waited for its turn.
      const bool waited = way.find("waits for its turn") != std::string::npos;
      CHECK_MESSAGE((waited || begins(way, below ? "mpi: " : "nodes: ")), way);
    }
  }
  CHECK(sum == comm.size() * (comm.size() + 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(all[i] == static_cast<int>(i) + 1);
    CHECK(recv[i * kLong] == static_cast<unsigned char>(i));
    CHECK(recv[i * kLong + kLong - 1] == static_cast<unsigned char>(i));
  }
  CHECK(ferry_barrier(comm.get()) == MPI_SUCCESS);
  CHECK(begins(last_way(comm), "nodes: "));
}

TEST_CASE("nodes, calls: blocks of an alltoallv fit into frames, or the MPI below carries them") {
  const Comm comm = duplicate();
  Exchange small(comm, 24, 0, 256); // a frame holds 256 bytes
  Exchange longer(comm, 24, 0, 257);
  Exchange large(comm, 24, 0, 4097);
  small.run(1);
  CHECK_MESSAGE(begins(last_way(comm), "nodes: "), last_way(comm));
  longer.run(2);
  CHECK_MESSAGE(begins(last_way(comm), "mpi: "), last_way(comm));
  CHECK_MESSAGE(last_way(comm).find("frame of 256 bytes") != std::string::npos, last_way(comm));
  for (std::uint64_t i = 0; i < 20; ++i) { // frames grow at once, and shrink behind 16 calls
    longer.run(3 + i);
    CHECK_MESSAGE(begins(last_way(comm), "nodes: "), last_way(comm));
  }
  for (std::uint64_t i = 0; i < 40; ++i) small.run(3 + i);
  longer.run(2);
  CHECK_MESSAGE(begins(last_way(comm), "mpi: "), last_way(comm));
  large.run(2);
  CHECK_MESSAGE(begins(last_way(comm), "mpi: "), last_way(comm));
  for (std::uint64_t i = 0; i < 15; ++i) small.run(3 + i); // not tried for a while
  CHECK_MESSAGE(begins(last_way(comm), "mpi: "), last_way(comm));
  small.run(20);
  CHECK_MESSAGE(begins(last_way(comm), "nodes: "), last_way(comm));
}

TEST_CASE("nodes, calls: a persistent alltoallv goes over nodes if all blocks are short") {
  const Comm comm = duplicate();
  const auto n = static_cast<std::size_t>(comm.size());
  for (const std::size_t longest : {std::size_t{0}, std::size_t{301}, std::size_t{4096}}) {
    for (const bool in_place : {false, true}) {
      // As long in both directions, so that it can be done in place.
      std::vector<MPI_Count> counts;
      std::vector<MPI_Aint> displs;
      for (int peer = 0; peer < comm.size(); ++peer) {
        const auto bytes = peer + comm.rank() == 1 ? longest : longest / 3;
        counts.push_back(static_cast<MPI_Count>(bytes));
        displs.push_back(static_cast<MPI_Aint>(static_cast<std::size_t>(peer) * longest));
      }
      std::vector<unsigned char> send(n * longest + 1);
      std::vector<unsigned char> recv(n * longest + 1);
      ferry_request request = FERRY_REQUEST_NULL;
      CHECK(
          ferry_alltoallv_init(
              in_place ? MPI_IN_PLACE : send.data(), counts.data(), displs.data(), MPI_BYTE,
              recv.data(), counts.data(), displs.data(), MPI_BYTE, comm.get(), MPI_INFO_NULL,
              &request) == MPI_SUCCESS);
      CAPTURE(longest);
      CAPTURE(in_place);
      CHECK_MESSAGE(begins(way_of(request), "nodes: "), way_of(request));
      for (std::uint64_t i = 0; i < 5; ++i) {
        poison(recv.data(), recv.size(), i);
        for (std::size_t peer = 0; peer < n; ++peer) {
          auto* from = in_place ? recv.data() : send.data();
          fill(
              from + displs[peer], static_cast<std::size_t>(counts[peer]),
              {i, comm.rank(), static_cast<int>(peer)});
        }
        CHECK(ferry_start(&request) == MPI_SUCCESS);
        CHECK(ferry_wait(&request) == MPI_SUCCESS);
        for (std::size_t peer = 0; peer < n; ++peer) {
          CHECK_FALSE(first_difference(
              recv.data() + displs[peer], static_cast<std::size_t>(counts[peer]),
              {i, static_cast<int>(peer), comm.rank()}));
        }
      }
      CHECK(ferry_request_free(&request) == MPI_SUCCESS);
    }
  }
}

TEST_CASE("nodes, calls: what the MPI below carries names the limit") {
  const Comm comm = duplicate();
  const auto n = static_cast<std::size_t>(comm.size());
  std::vector<unsigned char> send(n * 4097);
  std::vector<unsigned char> recv(n * 4097);
  for (const MPI_Count bytes : {4096, 4097}) {
    CHECK(
        ferry_alltoall(send.data(), bytes, MPI_BYTE, recv.data(), bytes, MPI_BYTE, comm.get()) ==
        MPI_SUCCESS);
    const bool nodes = bytes == 4096;
    CHECK_MESSAGE(
        last_way(comm).find(nodes ? "nodes: " : "node_alltoall_bytes 4096") != std::string::npos,
        last_way(comm));
  }
}

// With FERRY_TIMEOUT. Ranks 0 and 1 are on one node and look at each other's calls; those of other
// nodes wait for bytes that do not come.
TEST_SUITE("misfit") {
  TEST_CASE("nodes, calls: ranks of a node that make different calls are told") {
    const Comm comm = duplicate();
    const auto n = static_cast<std::size_t>(comm.size());
    std::vector<unsigned char> send(n * 16);
    std::vector<unsigned char> recv(n * 16);
    int code = MPI_SUCCESS;
    if (comm.rank() == 1) {
      code = ferry_bcast(send.data(), 8, MPI_BYTE, 0, comm.get());
    } else {
      code = ferry_allgather(send.data(), 8, MPI_BYTE, recv.data(), 8, MPI_BYTE, comm.get());
    }
    const std::string text = code == MPI_SUCCESS ? "" : ferry_error_text();
    if (comm.rank() == 0) {
      CHECK_MESSAGE(class_of(code) == MPI_ERR_TRUNCATE, text);
      CHECK_MESSAGE(text.find("rank 1 calls broadcast of 8 bytes") != std::string::npos, text);
    } else if (comm.rank() == 1) {
      CHECK_MESSAGE(class_of(code) == MPI_ERR_TRUNCATE, text);
      CHECK_MESSAGE(text.find("rank 0 calls allgather of 8 bytes") != std::string::npos, text);
    } else if (code != MPI_SUCCESS) {
      CHECK_MESSAGE(text.find("; ") != std::string::npos, text);
    }
  }

  TEST_CASE("nodes, calls: bytes of another node's other call are told from an alltoallv's") {
    const Comm comm = duplicate();
    const auto n = static_cast<std::size_t>(comm.size());
    constexpr MPI_Count kFrame = 16 + 256; // so that messages have one size
    std::vector<unsigned char> send(n * kFrame, 1);
    std::vector<unsigned char> recv(n * kFrame);
    CHECK(ferry_barrier(comm.get()) == MPI_SUCCESS);
    if (comm.rank() >= comm.size() / 2) {
      CHECK(
          ferry_alltoall(
              send.data(), kFrame, MPI_BYTE, recv.data(), kFrame, MPI_BYTE, comm.get()) ==
          MPI_SUCCESS);
      return;
    }
    const std::vector<MPI_Count> counts(n, 8);
    const std::vector<MPI_Aint> displs(n, 0);
    const int code = ferry_alltoallv(
        send.data(), counts.data(), displs.data(), MPI_BYTE, recv.data(), counts.data(),
        displs.data(), MPI_BYTE, comm.get());
    const std::string text = code == MPI_SUCCESS ? "" : ferry_error_text();
    CHECK_MESSAGE(class_of(code) == MPI_ERR_TRUNCATE, text);
    CHECK_MESSAGE(text.find("rank 2 makes another call, rank ") != std::string::npos, text);
  }

  TEST_CASE("nodes, calls: a node that stays away is named") {
    const Comm comm = duplicate();
    const int last = comm.size() - 1; // on another node than rank 0
    CHECK(ferry_barrier(comm.get()) == MPI_SUCCESS);
    if (comm.rank() == last) return;
    const int code = ferry_barrier(comm.get());
    const std::string text = code == MPI_SUCCESS ? "" : ferry_error_text();
    CHECK_MESSAGE(class_of(code) == MPI_ERR_OTHER, text);
    CHECK_MESSAGE(text.find("barrier on ") != std::string::npos, text);
    CHECK_MESSAGE(text.find("of rank") != std::string::npos, text);
  }
}
