// SPDX-License-Identifier: MIT
// The C++ face in use: what the other files of this folder must not be able to do, done right. Runs
// under mpiexec with any number of ranks; the oracle is a plain loop.
#include <array>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>
#include <ferry/ferry.hpp>

namespace {

int failures = 0;

void expect(bool fine, const char* what) {
  if (fine) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what);
}

struct Particle {
  double position[3];
  int id;
  bool operator==(const Particle&) const = default;
};

// Element i of the block that sender gives to receiver; never the same for two of them.
template <class T>
T value(int round, int sender, int receiver, std::size_t i) {
  const int mark = round * 1000003 + sender * 4099 + receiver * 131 + static_cast<int>(i);
  if constexpr (std::is_same_v<T, Particle>)
    return {{mark + 0.5, mark + 0.25, 1.0}, mark};
  else if constexpr (std::is_same_v<T, std::byte>)
    return static_cast<std::byte>(mark * 7 % 251);
  else if constexpr (std::is_same_v<T, bool>)
    return ((mark * 13) % 5) < 2;
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(mark % 120);
  else
    return T(static_cast<float>(mark % 1000), static_cast<float>(sender));
}

constexpr std::size_t kBlock = 37;

// Blocks of this rank before an alltoall (own == sender) or after it (own == receiver).
template <class T>
void fill(std::span<T> buffer, const ferry::Communicator& comm, int round) {
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = value<T>(round, comm.rank(), static_cast<int>(i / kBlock), i % kBlock);
  }
}

template <class T>
bool arrived(std::span<const T> buffer, const ferry::Communicator& comm, int round) {
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    if (!(buffer[i] == value<T>(round, static_cast<int>(i / kBlock), comm.rank(), i % kBlock))) {
      return false;
    }
  }
  return true;
}

template <class T>
void check_alltoall(const ferry::Communicator& comm, const char* type) {
  const std::size_t n = kBlock * static_cast<std::size_t>(comm.size());
  ferry::SharedArray<T> send(n);
  ferry::SharedArray<T> recv(n);
  fill(std::span<T>(send), comm, 1);
  expect(comm.alltoall(send, recv).ok() && arrived(std::span<const T>(recv), comm, 1), type);

  fill(std::span<T>(send), comm, 2);
  ferry::Request request = comm.ialltoall(std::span<const T>(send), std::span<T>(recv));
  expect(request.wait().ok() && arrived(std::span<const T>(recv), comm, 2), type);
  expect(request.wait().ok(), "wait of a finished request");

  ferry::Plan plan = comm.alltoall_init(send, recv);
  ferry::Plan moved = std::move(plan);
  for (int round = 3; round < 6; ++round) {
    fill(std::span<T>(send), comm, round);
    expect(moved.start().ok() && moved.wait().ok(), type);
    expect(arrived(std::span<const T>(recv), comm, round), type);
  }
  expect(moved.explain().find(": ") != std::string::npos, "explain of a plan is path: why");
  expect(!moved.print().empty(), "print of a plan");

  fill(std::span<T>(recv), comm, 7);
  expect(comm.alltoall(recv).ok() && arrived(std::span<const T>(recv), comm, 7), "in place");
  expect(comm.explain().find(": ") != std::string::npos, "explain of a communicator");
}

void check_allgather(const ferry::Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto own = static_cast<std::size_t>(comm.rank());
  const std::vector<int> send = {comm.rank() * 3 + 1, comm.rank() * 5 + 2};
  std::vector<int> expected;
  for (int r = 0; r < comm.size(); ++r) expected.insert(expected.end(), {r * 3 + 1, r * 5 + 2});

  std::vector<int> recv(2 * ranks, -1);
  expect(comm.allgather(send, recv).ok() && recv == expected, "allgather");
  std::vector<int> both(2 * ranks, -1);
  std::copy(send.begin(), send.end(), both.begin() + static_cast<std::ptrdiff_t>(2 * own));
  expect(comm.iallgather(both).wait().ok() && both == expected, "iallgather in place");
  ferry::Plan plan = comm.allgather_init(send, recv);
  for (int i = 0; i < 3; ++i) {
    recv.assign(recv.size(), -2 - i);
    expect(plan.start().ok() && plan.wait().ok() && recv == expected, "allgather_init");
  }
}

void check_broadcast(const ferry::Communicator& comm) {
  const int root = comm.size() - 1;
  const std::array<double, 3> expected = {1.5, -2.5, 3.5};
  const auto fresh = [&] { return comm.rank() == root ? expected : std::array<double, 3>{}; };
  std::array<double, 3> data = fresh();
  expect(comm.broadcast(data, root).ok() && data == expected, "broadcast");
  data = fresh();
  expect(comm.ibroadcast(data, root).wait().ok() && data == expected, "ibroadcast");

  std::array<double, 3> other = fresh();
  data = fresh();
  std::vector<ferry::Plan> plans;
  plans.push_back(comm.broadcast_init(data, root));
  plans.push_back(comm.broadcast_init(other, root));
  expect(ferry::start_all(plans).ok(), "start_all");
  bool done = false;
  for (long tries = 0; !done && tries < 100000000; ++tries) {
    expect(plans[1].test(done).ok(), "test");
  }
  expect(done && other == expected, "broadcast_init, tested");
  // The destructor of the active first plan waits, so afterwards its data is there.
  plans.clear();
  expect(data == expected, "a destructor completes its plan");
}

// Rank i gives j + 1 elements to rank j, and gets rank() + 1 from everyone.
template <class T>
void check_blocks(const ferry::Communicator& comm, const char* type) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto own = static_cast<std::size_t>(comm.rank()) + 1;
  std::vector<MPI_Count> rising(ranks);
  std::iota(rising.begin(), rising.end(), 1);
  const ferry::Blocks out = ferry::Blocks::packed(rising);
  const ferry::Blocks in =
      ferry::Blocks::packed(std::vector<MPI_Count>(ranks, static_cast<MPI_Count>(own)));
  ferry::SharedArray<T> send(ranks * (ranks + 1) / 2);
  ferry::SharedArray<T> recv(ranks * own);
  const auto put = [&](int round) {
    for (std::size_t to = 0, at = 0; to < ranks; ++to) {
      for (std::size_t i = 0; i <= to; ++i, ++at) {
        send[at] = value<T>(round, comm.rank(), static_cast<int>(to), i);
      }
    }
  };
  const auto came = [&](int round) {
    for (std::size_t at = 0; at < recv.size(); ++at) {
      const auto from = static_cast<int>(at / own);
      if (!(recv[at] == value<T>(round, from, comm.rank(), at % own))) return false;
    }
    return true;
  };
  put(1);
  expect(comm.alltoallv(send, out, recv, in).ok() && came(1), type);
  put(2);
  expect(comm.ialltoallv(send, out, recv, in).wait().ok() && came(2), type);
  ferry::Plan plan = comm.alltoallv_init(send, out, recv, in);
  for (int round = 3; round < 6; ++round) {
    put(round);
    expect(plan.start().ok() && plan.wait().ok() && came(round), type);
  }
}

void check_gather_and_scatter(const ferry::Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto own = static_cast<std::size_t>(comm.rank());
  const int root = comm.size() - 1;
  std::vector<MPI_Count> rising(ranks);
  std::iota(rising.begin(), rising.end(), 0);
  const ferry::Blocks blocks = ferry::Blocks::packed(rising);
  const std::vector<int> mine(own, comm.rank());
  std::vector<int> all(comm.rank() == root ? ranks * (ranks - 1) / 2 : 0, -1);
  expect(comm.gatherv(mine, all, blocks, root).ok(), "gatherv");
  for (std::size_t rank = 0, at = 0; comm.rank() == root && rank < ranks; ++rank) {
    for (std::size_t i = 0; i < rank; ++i) expect(all[at++] == static_cast<int>(rank), "gatherv");
  }
  std::vector<int> back(own, -1);
  expect(comm.iscatterv(all, blocks, back, root).wait().ok() && back == mine, "iscatterv");
  std::vector<int> every(ranks * (ranks - 1) / 2, -1);
  expect(comm.allgatherv(mine, every, blocks).ok(), "allgatherv");
  if (comm.rank() == root) expect(every == all, "allgatherv is like gatherv");

  const std::array<int, 2> two = {comm.rank(), -comm.rank()};
  std::vector<int> pairs(2 * ranks, -7);
  ferry::Plan gather = comm.gather_init(two, pairs, root);
  std::array<int, 2> again = {};
  ferry::Plan scatter = comm.scatter_init(pairs, again, root);
  expect(gather.start().ok() && gather.wait().ok(), "gather_init");
  expect(scatter.start().ok() && scatter.wait().ok() && again == two, "scatter_init");
  expect(comm.barrier().ok() && comm.ibarrier().wait().ok(), "barrier");
}

void check_reductions(const ferry::Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const int sum = comm.size() * (comm.size() - 1) / 2;
  std::vector<int> send(ranks, comm.rank());
  std::vector<int> recv(ranks, -1);
  expect(comm.allreduce(send, recv, ferry::Op::sum).ok(), "allreduce");
  expect(recv == std::vector<int>(ranks, sum), "allreduce: sum");
  recv = send;
  expect(comm.iallreduce(recv, ferry::Op::max).wait().ok(), "iallreduce in place");
  expect(recv == std::vector<int>(ranks, comm.size() - 1), "iallreduce: max");
  std::vector<std::complex<double>> z(3, {1, static_cast<double>(comm.rank())});
  std::vector<std::complex<double>> total(3);
  expect(comm.reduce(z, total, ferry::Op::sum, 0).ok(), "reduce");
  const std::complex<double> expected(comm.size(), sum);
  if (comm.rank() == 0) expect(total[2] == expected, "reduce: complex sum");
  std::array<int, 1> one = {-1};
  ferry::Plan plan = comm.reduce_scatter_block_init(send, one, ferry::Op::sum);
  for (int start = 0; start < 3; ++start) {
    one = {-1};
    expect(plan.start().ok() && plan.wait().ok() && one[0] == sum, "reduce_scatter_block_init");
  }
  std::vector<MPI_Count> counts(ranks, 0);
  counts.back() = static_cast<MPI_Count>(ranks);
  recv.assign(ranks, -1);
  expect(comm.reduce_scatter(send, recv, counts, ferry::Op::sum).ok(), "reduce_scatter");
  const bool last = comm.rank() == comm.size() - 1;
  expect(recv == std::vector<int>(ranks, last ? sum : -1), "reduce_scatter: all to the last");
  std::vector<double> real(ranks, 1);
  expect(!comm.allreduce(real, ferry::Op::bit_or).ok(), "no bits of doubles");
}

template <class Call>
void expect_error(Call call, const std::vector<std::string>& words) {
  try {
    call();
  } catch (const ferry::Error& error) {
    expect(error.code() != MPI_SUCCESS, "an Error has a code");
    for (const auto& word : words) {
      expect(std::string(error.what()).find(word) != std::string::npos, error.what());
    }
    return;
  }
  expect(false, "an Error was due");
}

void check_errors(const ferry::Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<int> fits(5 * ranks);
  std::vector<int> small(5 * ranks - 1);
  const auto count = [](std::size_t n) { return std::to_string(n); };
  expect_error([&] { (void)comm.alltoall(fits, small); }, {count(5 * ranks), count(5 * ranks - 1)});
  expect_error([&] { (void)comm.ialltoall(fits, small); }, {count(5 * ranks)});
  expect_error(
      [&] { (void)comm.allgather_init(fits, fits.size() > 5 ? fits : small); },
      {count(5 * ranks * ranks)});
  if (ranks > 1) {
    expect_error([&] { (void)comm.alltoall(small); }, {count(5 * ranks - 1), count(ranks)});
  }
  expect_error([&] { (void)comm.broadcast_init(fits, comm.size()); }, {});
  const ferry::Blocks five = ferry::Blocks::packed(std::vector<MPI_Count>(ranks, 5));
  expect_error(
      [&] { (void)comm.alltoallv(fits, five, small, five); }, {"alltoallv: recv", "is not inside"});
  expect_error(
      [&] { (void)comm.ialltoallv(fits, five, fits, {}); }, {"alltoallv: recv", count(ranks)});
  expect_error(
      [&] { (void)comm.allreduce(fits, small, ferry::Op::sum); }, {"allreduce", count(5 * ranks)});
  expect(!comm.broadcast(fits, -1).ok(), "a wrong root is a bad Status");
  expect(!comm.broadcast(fits, -1).text().empty(), "a bad Status has a text");
  expect_error([] { ferry::Communicator none(MPI_COMM_NULL); }, {"MPI_COMM_NULL"});
  expect_error([] { ferry::SharedArray<double> huge(std::size_t(-1) / 4); }, {"large"});
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  expect_error([] { ferry::SharedArray<char> huge(std::size_t{1} << 46); }, {"70368744177664"});
  ferry::Plan empty;
  expect(!empty.start().ok(), "an empty plan does not start");
  expect(empty.wait().ok(), "an empty plan is complete");
  expect_error([&] { (void)empty.explain(); }, {"explain"});
  expect_error([&] { (void)ferry::Plan().print(); }, {"print"});
  ferry::Plan plan = comm.alltoall_init(fits);
  expect(plan.start().ok(), "start");
  expect(!plan.start().ok(), "an active plan does not start again");
  expect(plan.wait().ok(), "and completes all the same");
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const ferry::Communicator comm(MPI_COMM_WORLD);
    check_alltoall<int>(comm, "int");
    check_alltoall<bool>(comm, "bool");
    check_alltoall<long double>(comm, "long double");
    check_alltoall<std::complex<float>>(comm, "std::complex<float>");
    check_alltoall<std::byte>(comm, "std::byte");
    check_alltoall<Particle>(comm, "struct");
    check_allgather(comm);
    check_broadcast(comm);
    check_blocks<double>(comm, "alltoallv of double");
    check_blocks<Particle>(comm, "alltoallv of struct");
    check_gather_and_scatter(comm);
    check_reductions(comm);
    check_errors(comm);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
