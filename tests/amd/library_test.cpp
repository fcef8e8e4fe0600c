// SPDX-License-Identifier: MIT
// The functions of ferry.h on memory of modelled GPUs, those too whose calls the copy engines do
// not take: blocks that differ, blocks with gaps, reductions.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ferry/ferry.h>

#include "device/start.hpp"
#include "lib/exec/device_memory.hpp"
#include "tests/amd/library_rig.hpp"
#include "tests/matrix/collective_grid.hpp"

namespace ferry::test {
namespace {

std::unique_ptr<Rig>& storage() {
  static std::unique_ptr<Rig> rig;
  return rig;
}

// While MPI still runs: what belongs to MPI_COMM_SELF goes first in MPI_Finalize.
int end_rig(MPI_Comm, int, void*, void*) {
  storage().reset();
  return MPI_SUCCESS;
}

} // namespace

Rig& rig() {
  if (storage() != nullptr) return *storage();
  storage() = std::make_unique<Rig>(RigSettings{});
  core::install_device_backend(core::DeviceKind::amd, storage()->backend());
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_rig, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
  return *storage();
}

} // namespace ferry::test

// In the grid a third of the buffers ask for memory like this: other ranks have theirs on the host.
extern "C" int MPI_Alloc_mem(MPI_Aint size, MPI_Info, void* base) {
  ferry::test::Rig& rig = ferry::test::rig();
  *static_cast<void**>(base) = rig.rocr().hip_malloc(rig.node(), static_cast<std::size_t>(size));
  return MPI_SUCCESS;
}
extern "C" int MPI_Free_mem(void* base) {
  ferry::test::rig().rocr().hip_free(base);
  return MPI_SUCCESS;
}

namespace ferry::test {
namespace {

constexpr Way kAllWays[] = {Way::blocking, Way::nonblocking, Way::persistent};

void run_grid(const std::vector<Coll>& colls) {
  (void)rig();
  for (const Coll coll : colls) {
    for (const Way way : kAllWays) run_collective(coll, way, {0, 8, 5000, 70000});
  }
  for (const std::string& fault : rig().kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: ferry.h with blocks that differ and blocks with gaps, some on GPUs") {
  run_grid({Coll::alltoallv, Coll::alltoallw, Coll::allgatherv});
}

TEST_CASE("amd: ferry.h, gather and scatter, some buffers on GPUs") {
  run_grid({Coll::gather, Coll::gatherv, Coll::scatter, Coll::scatterv});
}

TEST_CASE("amd: ferry.h with equal blocks, types with gaps too, some on GPUs") {
  run_grid({Coll::alltoall, Coll::allgather, Coll::bcast});
}

// Elements that differ from rank to rank and start to start, and their sum.
std::int64_t element(int iteration, int rank, std::size_t i) {
  return static_cast<std::int64_t>(i % 1000) * (rank + 1) + iteration * 7 - rank;
}
std::int64_t sum_of(int iteration, int ranks, std::size_t i) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += element(iteration, rank, i);
  return sum;
}

// A reduction of 64-bit integers with all buffers on GPUs.
class Sums {
 public:
  Sums(Coll coll, Way way, std::size_t part)
      : way_(way),
        ranks_(rig().ranks()),
        part_(part),
        whole_(part * static_cast<std::size_t>(ranks_)),
        send_(rig(), whole_ * sizeof(std::int64_t)),
        recv_(rig(), whole_ * sizeof(std::int64_t)) {
    call_.form = {coll, way, true, false};
    call_.send = send_.data();
    call_.recv = recv_.data();
    call_.op = MPI_SUM;
    call_.root = ranks_ - 1;
    call_.comm = MPI_COMM_WORLD;
    call_.received.types = {MPI_INT64_T};
    const bool scatters = coll == Coll::reduce_scatter || coll == Coll::reduce_scatter_block;
    const auto count = static_cast<MPI_Count>(scatters ? part_ : whole_);
    call_.received.counts.assign(static_cast<std::size_t>(ranks_), count);
    first_ = scatters ? part_ * static_cast<std::size_t>(rig().rank()) : 0;
    results_ = scatters ? part_ : whole_;
    if (coll == Coll::reduce && rig().rank() != call_.root) results_ = 0;
    if (way == Way::persistent) REQUIRE(make_ferry_call(call_, &request_) == MPI_SUCCESS);
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;
  ~Sums() {
    if (way_ == Way::persistent) ferry_request_free(&request_);
  }
  [[nodiscard]] ferry_request request() const { return request_; }

  // How many elements are wrong after this call.
  std::size_t run(int iteration) {
    std::vector<std::int64_t> all(whole_);
    for (std::size_t i = 0; i < whole_; ++i) all[i] = element(iteration, rig().rank(), i);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(all.data());
    send_.write({bytes, bytes + whole_ * sizeof(std::int64_t)});
    const bool persistent = way_ == Way::persistent;
    int code = persistent ? ferry_start(&request_) : make_ferry_call(call_, &request_);
    if (code == MPI_SUCCESS) code = complete_call(call_, &request_, iteration % 2 == 0);
    REQUIRE_MESSAGE(code == MPI_SUCCESS, ferry_error_text());
    const std::vector<unsigned char> seen = recv_.read();
    const auto* const sums = reinterpret_cast<const std::int64_t*>(seen.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < results_; ++i) {
      wrong += sums[i] != sum_of(iteration, ranks_, first_ + i) ? 1 : 0;
    }
    return wrong;
  }

 private:
  Way way_;
  int ranks_;
  std::size_t part_; // elements of each rank's part
  std::size_t whole_;
  std::size_t first_ = 0; // of the results on this rank
  std::size_t results_ = 0;
  RigBuffer send_;
  RigBuffer recv_;
  Call call_;
  ferry_request request_ = FERRY_REQUEST_NULL;
};

std::string explained(ferry_request request) {
  std::string text(4096, 0);
  CHECK(ferry_explain(request, text.data(), text.size()) == MPI_SUCCESS);
  return text.c_str();
}

TEST_CASE("amd: reductions of memory of GPUs are right, and say that they run on the host") {
  const std::vector<Coll> colls{
      Coll::reduce_scatter, Coll::reduce_scatter_block, Coll::allreduce, Coll::reduce};
  for (const Coll coll : colls) {
    for (const Way way : kAllWays) {
      for (const std::size_t part : {1, 700, 9000}) {
        CAPTURE(part);
        Sums sums(coll, way, part);
        for (int iteration = 1; iteration <= 3; ++iteration) CHECK(sums.run(iteration) == 0);
        if (way != Way::persistent) continue;
        const std::string text = explained(sums.request());
        const char* const told = rig().ranks() == 1
                                     ? "device memory goes through the host: one rank"
                                     : "device memory goes through the host: reductions run on";
        CHECK_MESSAGE(contains(text, told), text);
      }
    }
  }
}

// All buffers on GPUs, so that who explains knows what he says.
std::string explained_call(Coll coll, MPI_Datatype type) {
  const auto ranks = static_cast<std::size_t>(rig().ranks());
  RigBuffer send(rig(), 64 * ranks);
  RigBuffer recv(rig(), 64 * ranks);
  Call call;
  call.form = {coll, Way::persistent, true, false};
  call.send = send.data();
  call.recv = recv.data();
  call.comm = MPI_COMM_WORLD;
  for (Vectors* side : {&call.sent, &call.received}) {
    side->counts.assign(ranks, 1);
    side->types.assign(ranks, type);
    side->displs.clear();
    for (std::size_t i = 0; i < ranks; ++i) side->displs.push_back(static_cast<MPI_Aint>(i * 8));
  }
  ferry_request request = FERRY_REQUEST_NULL;
  REQUIRE(make_ferry_call(call, &request) == MPI_SUCCESS);
  const std::string text = explained(request);
  CHECK(ferry_request_free(&request) == MPI_SUCCESS);
  return text;
}

TEST_CASE("amd: a handle tells whether engines carry it, or why it goes through the host") {
  if (rig().ranks() == 1) return;
  const auto says = [](Coll coll, MPI_Datatype type, const char* part) {
    const std::string text = explained_call(coll, type);
    CHECK_MESSAGE(contains(text, part), text);
  };
  says(Coll::alltoall, MPI_DOUBLE, "of the kfd provider");
  for (const Coll coll : {Coll::gather, Coll::scatterv, Coll::alltoallv, Coll::allgatherv}) {
    says(coll, MPI_DOUBLE, "blocks of their own sizes, pushed");
  }
  MPI_Datatype gaps = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 3, MPI_CHAR, &gaps);
  MPI_Type_commit(&gaps);
  says(Coll::alltoall, gaps, "device memory goes through the host: rank 0: blocks with gaps");
  MPI_Type_free(&gaps);
}

// As a kernel does it, which keeps the program waiting.
bool start_and_wait(const device::StartHandle& handle, std::uint64_t n) {
  return std::async(
             std::launch::async,
             [&] {
               const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
               return device::start(handle, n) && device::wait_start(handle, n, [end] {
                        std::this_thread::yield();
                        return std::chrono::steady_clock::now() < end;
                      });
             })
      .get();
}

// An alltoall of integers on GPUs, with other ones at each start.
class Integers {
 public:
  Integers() {
    REQUIRE(
        ferry_alltoall_init(
            send_.data(), kCount, MPI_INT, recv_.data(), kCount, MPI_INT, MPI_COMM_WORLD,
            MPI_INFO_NULL, &request_) == MPI_SUCCESS);
  }
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;
  ~Integers() { CHECK(ferry_request_free(&request_) == MPI_SUCCESS); }
  [[nodiscard]] ferry_request& request() { return request_; }

  void fill(int iteration) {
    std::vector<int> out(ranks_ * kCount);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = value(iteration, me_, i / kCount, i % kCount);
    }
    const auto* const bytes = reinterpret_cast<const unsigned char*>(out.data());
    send_.write({bytes, bytes + out.size() * sizeof(int)});
    recv_.write(std::vector<unsigned char>(out.size() * sizeof(int), 0xee));
  }
  [[nodiscard]] std::size_t wrong(int iteration) {
    const std::vector<unsigned char> seen = recv_.read();
    const auto* const in = reinterpret_cast<const int*>(seen.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < ranks_ * kCount; ++i) {
      wrong += in[i] != value(iteration, i / kCount, me_, i % kCount) ? 1 : 0;
    }
    return wrong;
  }

 private:
  static constexpr std::size_t kCount = 500;
  static int value(int iteration, std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<int>(i * 31 + from * 1009 + to * 17) + iteration * 7919;
  }
  const std::size_t ranks_ = static_cast<std::size_t>(rig().ranks());
  const std::size_t me_ = static_cast<std::size_t>(rig().rank());
  RigBuffer send_{rig(), ranks_* kCount * sizeof(int)};
  RigBuffer recv_{rig(), ranks_* kCount * sizeof(int)};
  ferry_request request_ = FERRY_REQUEST_NULL;
};

TEST_CASE("amd: ferry_arm gives starts to a kernel, ferry_start takes the next of them") {
  Integers integers;
  ferry_request& request = integers.request();
  device::StartHandle handle;
  if (rig().ranks() == 1) { // it runs on the host
    CHECK(ferry_arm(request, 1, &handle, sizeof handle) == MPI_ERR_REQUEST);
    return;
  }
  for (int iteration = 0; iteration < 12; ++iteration) {
    if (iteration % 4 == 0) {
      REQUIRE(ferry_arm(request, 4, &handle, sizeof handle) == MPI_SUCCESS);
    }
    integers.fill(iteration);
    if (iteration % 4 == 3) {
      CHECK(ferry_start(&request) == MPI_SUCCESS);
      CHECK(ferry_wait(&request) == MPI_SUCCESS);
    } else {
      CHECK(start_and_wait(handle, static_cast<std::uint64_t>(iteration % 4 + 1)));
    }
    CHECK(integers.wrong(iteration) == 0);
  }
  CHECK(ferry_arm(request, 1000000, &handle, sizeof handle) == MPI_ERR_REQUEST);
  CHECK(contains(ferry_error_text(), "more starts do not fit into the rings"));
}

} // namespace
} // namespace ferry::test
