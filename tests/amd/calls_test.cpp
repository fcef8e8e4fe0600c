// SPDX-License-Identifier: MIT
// Blocking calls of ferry.h that repeat, on memory of modelled GPUs, with FERRY_DEVICE_CALLS=plans.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "lib/config/config.hpp"
#include "tests/amd/library_rig.hpp"

namespace ferry::test {
namespace {

constexpr MPI_Aint kLongest = 3000; // bytes of a block

bool has_plans() {
  return core::config().device_calls == core::DeviceCallChoice::plans && rig().ranks() > 1;
}

// Bytes of the block from one rank to another; `variant` makes another call of it.
MPI_Count bytes_of(int variant, int from, int to) {
  return (from * 7 + to * 3 + variant * 5) % 11 * 200 + variant;
}

// A communicator that ends before the machine does.
class Comm {
 public:
  Comm() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm() { MPI_Comm_free(&comm_); }
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  [[nodiscard]] bool last_by_plan() const {
    std::string text(4096, 0);
    REQUIRE(ferry_comm_explain(comm_, text.data(), text.size()) == MPI_SUCCESS);
    return text.find("device: sdma: ") == 0 && contains(text, "a plan that is kept");
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Alltoallv with the counts of a variant and other data at each call, on buffers of its own.
class Exchange {
 public:
  explicit Exchange(MPI_Comm comm, RigBuffer::Where where = RigBuffer::Where::device)
      : comm_(comm), send_(rig(), room(), where), recv_(rig(), room(), where) {}

  // How many bytes are wrong.
  std::size_t run(int variant, int iteration) {
    const int me = rig().rank();
    std::vector<MPI_Count> out;
    std::vector<MPI_Count> in;
    std::vector<MPI_Aint> places;
    std::vector<unsigned char> data(room());
    for (int peer = 0; peer < rig().ranks(); ++peer) {
      out.push_back(bytes_of(variant, me, peer));
      in.push_back(bytes_of(variant, peer, me));
      places.push_back(peer * kLongest);
      for (MPI_Count i = 0; i < out.back(); ++i) {
        data[at(places.back() + i)] = pattern_byte(iteration, me, peer, at(i));
      }
    }
    send_.write(data);
    recv_.write(std::vector<unsigned char>(room(), 0x77));
    const int code = ferry_alltoallv(
        send_.data(), out.data(), places.data(), MPI_BYTE, recv_.data(), in.data(), places.data(),
        MPI_BYTE, comm_);
    REQUIRE_MESSAGE(code == MPI_SUCCESS, ferry_error_text());
    const std::vector<unsigned char> seen = recv_.read();
    std::size_t wrong = 0;
    for (int peer = 0; peer < rig().ranks(); ++peer) {
      for (MPI_Count i = 0; i < kLongest; ++i) {
        const bool sent = i < in[at(peer)];
        const unsigned char due = sent ? pattern_byte(iteration, peer, me, at(i)) : 0x77;
        wrong += seen[at(peer * kLongest + i)] != due ? 1 : 0;
      }
    }
    return wrong;
  }

 private:
  static std::size_t at(MPI_Count i) { return static_cast<std::size_t>(i); }
  static std::size_t room() { return at(kLongest) * at(rig().ranks()); }
  MPI_Comm comm_;
  RigBuffer send_;
  RigBuffer recv_;
};

TEST_CASE("amd: calls that repeat get a plan, others go through the host") {
  if (!has_plans()) return;
  const Comm comm;
  Exchange exchange(comm.get());
  for (int i = 0; i < 6; ++i) {
    CHECK(exchange.run(0, i) == 0);
    CHECK(comm.last_by_plan() == (i >= 2));
  }
  // Other counts, and back.
  for (int i = 0; i < 2; ++i) {
    CHECK(exchange.run(1, 10 + i) == 0);
    CHECK_FALSE(comm.last_by_plan());
    CHECK(exchange.run(0, 20 + i) == 0);
    CHECK(comm.last_by_plan());
  }
  for (const std::string& fault : rig().kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: a call that repeats on some ranks only has no plan there") {
  if (!has_plans()) return;
  const Comm comm;
  Exchange first(comm.get());
  Exchange second(comm.get());
  for (int i = 0; i < 6; ++i) { // rank 0 takes other buffers each time
    Exchange fresh(comm.get());
    Exchange& used = rig().rank() == 0 ? fresh : first;
    CHECK(used.run(0, i) == 0);
    CHECK_FALSE(comm.last_by_plan());
  }
  for (int i = 0; i < 4; ++i) CHECK(first.run(0, 30 + i) == 0);
  CHECK(comm.last_by_plan());
  // One rank comes with the other buffers: for this call nobody uses the plan.
  CHECK((rig().rank() == 1 ? second : first).run(0, 40) == 0);
  CHECK_FALSE(comm.last_by_plan());
  CHECK(first.run(0, 41) == 0);
  CHECK(comm.last_by_plan());
}

TEST_CASE("amd: memory that is freed and allocated again is not that of a kept plan") {
  if (!has_plans()) return;
  const Comm comm;
  for (int round = 0; round < 4; ++round) {
    Exchange exchange(comm.get());
    for (int i = 0; i < 4; ++i) {
      CHECK(exchange.run(0, round * 10 + i) == 0);
      CHECK(comm.last_by_plan() == (i >= 2));
    }
  }
}

TEST_CASE("amd: memory of the host on one rank keeps all from plans") {
  if (!has_plans()) return;
  const Comm comm;
  const bool host = rig().rank() == rig().ranks() - 1;
  Exchange exchange(comm.get(), host ? RigBuffer::Where::host : RigBuffer::Where::device);
  for (int i = 0; i < 4; ++i) {
    CHECK(exchange.run(0, i) == 0);
    CHECK_FALSE(comm.last_by_plan());
  }
}

TEST_CASE("amd: few plans are kept, the one that was used last among them") {
  if (!has_plans()) return;
  const Comm comm;
  Exchange exchange(comm.get());
  for (int i = 0; i < 3; ++i) {
    for (int variant = 0; variant < 3; ++variant) {
      CHECK(exchange.run(variant, i * 3 + variant) == 0);
      CHECK(comm.last_by_plan() == (i == 2));
    }
  }
  const std::size_t queues = rig().kernel().queues();
  CHECK(exchange.run(2, 50) == 0);
  CHECK(comm.last_by_plan());
  CHECK(exchange.run(0, 51) == 0); // its plan made room for another
  CHECK_FALSE(comm.last_by_plan());
  for (int i = 0; i < 12; ++i) CHECK(exchange.run(i % 4, 60 + i) == 0);
  CHECK(rig().kernel().queues() <= queues + static_cast<std::size_t>(rig().ranks()));
}

// Each of the other calls, six times, with one value that changes.
void repeat(const std::function<int(std::byte*, std::byte*, MPI_Comm)>& call) {
  const Comm comm;
  const auto ranks = static_cast<std::size_t>(rig().ranks());
  RigBuffer send(rig(), 64 * ranks);
  RigBuffer recv(rig(), 64 * ranks);
  for (int i = 0; i < 6; ++i) {
    send.write(std::vector<unsigned char>(64 * ranks, static_cast<unsigned char>(i + 1)));
    recv.write(std::vector<unsigned char>(64 * ranks, static_cast<unsigned char>(i + 1)));
    REQUIRE_MESSAGE(call(send.data(), recv.data(), comm.get()) == MPI_SUCCESS, ferry_error_text());
    CHECK(comm.last_by_plan() == (i >= 2));
    CHECK(recv.read() == std::vector<unsigned char>(64 * ranks, static_cast<unsigned char>(i + 1)));
  }
}

TEST_CASE("amd: every blocking call that repeats gets a plan") {
  if (!has_plans()) return;
  const auto ranks = static_cast<std::size_t>(rig().ranks());
  const std::vector<MPI_Count> counts(ranks, 64);
  std::vector<MPI_Aint> places;
  for (std::size_t i = 0; i < ranks; ++i) places.push_back(static_cast<MPI_Aint>(i) * 64);
  const MPI_Datatype byte = MPI_BYTE;
  repeat([&](std::byte* s, std::byte* r, MPI_Comm c) {
    return ferry_alltoall(s, 64, byte, r, 64, byte, c);
  });
  repeat([&](std::byte* s, std::byte* r, MPI_Comm c) {
    return ferry_allgatherv(s, 64, byte, r, counts.data(), places.data(), byte, c);
  });
  repeat([&](std::byte*, std::byte* r, MPI_Comm c) { return ferry_bcast(r, 64, byte, 0, c); });
  repeat([&](std::byte* s, std::byte* r, MPI_Comm c) {
    return ferry_gatherv(s, 64, byte, r, counts.data(), places.data(), byte, 1, c);
  });
  repeat([&](std::byte* s, std::byte* r, MPI_Comm c) {
    return ferry_scatterv(s, counts.data(), places.data(), byte, r, 64, byte, 1, c);
  });
}

} // namespace
} // namespace ferry::test
