// SPDX-License-Identifier: MIT
// The C++20 face of Ferry, header-only over ferry.h.
//
// Errors: the control path (construction, *_init, starting a non-blocking call, allocation, and a
// span of the wrong size anywhere) throws Error; the data path (blocking calls, start, test, wait)
// returns Status. No MPI error handler is called, but for what SharedArray says.
//
// Buffers are contiguous ranges of trivially copyable elements: std::span, std::vector, std::array,
// SharedArray. Arithmetic types and std::complex travel as their MPI datatype, all others as bytes.
// All calls are collective in the MPI sense; objects must be gone before MPI_Finalize.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <mpi.h>

#include <ferry/ferry.h>
#include <ferry/buffers.hpp>

namespace ferry {

/// What the control path throws; what() says function, rank, cause and remedy.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// An MPI error class, or an error code of one.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Outcome of a data-path operation. Fine ones cost no allocation; text() is "" for them.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int code, std::string text) : code_(code), text_(std::move(text)) {}
  [[nodiscard]] bool ok() const noexcept { return code_ == MPI_SUCCESS; }
  explicit operator bool() const noexcept { return ok(); }
  /// MPI_SUCCESS, an MPI error class, or an error code of one.
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// For programs that want exceptions on the data path too.
  void or_throw() const {
    if (!ok()) throw Error(code_, text_);
  }

 private:
  int code_ = MPI_SUCCESS;
  std::string text_;
};

namespace detail {

[[nodiscard]] inline Status status_of(int code) {
  if (code == MPI_SUCCESS) return {};
  return {code, ferry_error_text()};
}

inline void check(int code) {
  if (code != MPI_SUCCESS) throw Error(code, ferry_error_text());
}

// One line of text from a function of ferry.h that fills a buffer.
[[nodiscard]] std::string line(auto fill) {
  std::array<char, 1024> text{};
  check(fill(text.data(), text.size()));
  return text.data();
}

// Owner of a C handle. Whatever ends an active handle waits for it first: its buffers are in use.
class Handle {
 public:
  Handle() = default;
  explicit Handle(ferry_request raw) noexcept : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, FERRY_REQUEST_NULL)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      finish();
      raw_ = std::exchange(other.raw_, FERRY_REQUEST_NULL);
    }
    return *this;
  }
  ~Handle() { finish(); }

  [[nodiscard]] bool empty() const noexcept { return raw_ == FERRY_REQUEST_NULL; }

  Status test(bool& done) {
    int flag = 0;
    const int code = ferry_test(&raw_, &flag);
    done = flag != 0;
    return status_of(code);
  }
  Status wait() { return status_of(ferry_wait(&raw_)); }
  Status start() {
    if (empty()) return {MPI_ERR_REQUEST, "start: there is no collective in this object"};
    return status_of(ferry_start(&raw_));
  }
  [[nodiscard]] std::string explain() const {
    demand("explain");
    return line([this](char* text, std::size_t size) { return ferry_explain(raw_, text, size); });
  }
  [[nodiscard]] std::string print() const {
    demand("print");
    std::size_t needed = 0;
    check(ferry_print(raw_, nullptr, 0, &needed));
    std::string text(needed, '\0');
    check(ferry_print(raw_, text.data(), text.size(), nullptr));
    text.resize(text.empty() ? 0 : text.size() - 1);
    return text;
  }

 private:
  void demand(const std::string& what) const {
    if (empty()) throw Error(MPI_ERR_REQUEST, what + ": there is no collective in this object");
  }
  void finish() noexcept {
    if (!empty()) ferry_wait(&raw_);
    if (!empty()) ferry_request_free(&raw_);
  }

  ferry_request raw_ = FERRY_REQUEST_NULL;
};

} // namespace detail

/// A non-blocking collective under way. Move-only. The buffers belong to it until test() says done
/// or wait() returns; the destructor of an active one therefore waits, and an error met there is
/// lost. A finished or default-made one is done at once.
class Request {
 public:
  Request() = default;
  explicit Request(detail::Handle handle) noexcept : handle_(std::move(handle)) {}
  /// Progress without blocking; done tells whether the collective is complete.
  Status test(bool& done) { return handle_.test(done); }
  Status wait() { return handle_.wait(); }
  /// "<path>: <why>"; only before completion. Throws Error.
  [[nodiscard]] std::string explain() const { return handle_.explain(); }

 private:
  detail::Handle handle_;
};

/// A persistent collective: compiled once, started any number of times. Move-only. The buffers
/// named at *_init must stay and belong to the plan between start() and completion; the destructor
/// of an active plan waits, and an error met there is lost. Freeing is local.
class Plan {
 public:
  Plan() = default;
  explicit Plan(detail::Handle handle) noexcept : handle_(std::move(handle)) {}
  /// Of an active or empty plan: a Status of class MPI_ERR_REQUEST.
  Status start() { return handle_.start(); }
  /// Progress without blocking; done tells whether the last start is complete.
  Status test(bool& done) { return handle_.test(done); }
  /// Completes the last start; at once when there is none under way.
  Status wait() { return handle_.wait(); }
  /// "<path>: <why>": how the bytes move and what decided it. Throws Error.
  [[nodiscard]] std::string explain() const { return handle_.explain(); }
  /// The steps of this rank, one a line. Throws Error.
  [[nodiscard]] std::string print() const { return handle_.print(); }

 private:
  detail::Handle handle_;
};

/// Starts plans in order. Ends at the first one that fails; those before it are then active.
inline Status start_all(std::span<Plan> plans) {
  for (Plan& plan : plans) {
    if (Status status = plan.start(); !status.ok()) return status;
  }
  return {};
}

/// Owner of zeroed memory that the other ranks of the node map, which saves Ferry one copy.
/// Move-only; making one is local. Must outlive the plans that use it. Throws Error when there is
/// no such memory left.
template <Element T>
class SharedArray {
 public:
  SharedArray() = default;
  explicit SharedArray(std::size_t count) : count_(count) {
    constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<MPI_Aint>::max());
    if (count > kMost / sizeof(T)) {
      throw Error(
          MPI_ERR_NO_MEM, "SharedArray of " + std::to_string(count) + " elements of " +
                              std::to_string(sizeof(T)) + " bytes: too large");
    }
    if (count > 0) detail::check(ferry_alloc(static_cast<MPI_Aint>(count * sizeof(T)), &data_));
  }
  SharedArray(SharedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  SharedArray& operator=(SharedArray&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~SharedArray() { release(); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + count_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + count_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  void release() noexcept {
    if (data_ != nullptr) ferry_free(data_);
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A view of an MPI communicator with Ferry's collectives. The communicator is borrowed: neither
/// duplicated nor freed, and it must outlive this object and what it made. Copies are cheap.
///
/// Every collective comes as blocking call, as i* (a Request) and as *_init (a Plan).
/// * alltoall(send, recv): block i of send goes to rank i, block j of recv comes from rank j. The
///   size of send must be a multiple of size(); recv has at least that size. alltoall(buffer)
///   works in place.
/// * allgather(send, recv): send of rank j becomes block j of recv; recv has at least size() times
///   the size of send. allgather(buffer): block rank() of buffer is what this rank gives.
/// * broadcast(buffer, root): buffer of root replaces buffer of all.
/// A blocking call returns when this rank's buffers are its own again; it may wait for others.
class Communicator {
 public:
  /// Throws Error for MPI_COMM_NULL and for inter-communicators.
  explicit Communicator(MPI_Comm comm) : comm_(comm) {
    if (comm == MPI_COMM_NULL) throw Error(MPI_ERR_COMM, "Communicator: MPI_COMM_NULL");
    int inter = 0;
    MPI_Comm_test_inter(comm, &inter);
    if (inter != 0) throw Error(MPI_ERR_COMM, "Communicator: an inter-communicator");
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] MPI_Comm mpi() const noexcept { return comm_; }
  /// "<path>: <why>" of this rank's last blocking or non-blocking collective. Throws Error.
  [[nodiscard]] std::string explain() const {
    return detail::line(
        [this](char* text, std::size_t size) { return ferry_comm_explain(comm_, text, size); });
  }

  Status alltoall(SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return run(alltoall_call(send, recv));
  }
  Status alltoall(RecvBuffer auto&& buffer) const { return run(alltoall_call(buffer)); }
  [[nodiscard]] Request ialltoall(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Request(make(alltoall_call(send, recv), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Request ialltoall(RecvBuffer auto&& buffer) const {
    return Request(make(alltoall_call(buffer), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan alltoall_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Plan(make(alltoall_call(send, recv), FERRY_PERSISTENT));
  }
  [[nodiscard]] Plan alltoall_init(RecvBuffer auto&& buffer) const {
    return Plan(make(alltoall_call(buffer), FERRY_PERSISTENT));
  }

  Status allgather(SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return run(allgather_call(send, recv));
  }
  Status allgather(RecvBuffer auto&& buffer) const { return run(allgather_call(buffer)); }
  [[nodiscard]] Request iallgather(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Request(make(allgather_call(send, recv), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Request iallgather(RecvBuffer auto&& buffer) const {
    return Request(make(allgather_call(buffer), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan allgather_init(
      SendBuffer auto&& send, RecvBufferFor<decltype(send)> auto&& recv) const {
    return Plan(make(allgather_call(send, recv), FERRY_PERSISTENT));
  }
  [[nodiscard]] Plan allgather_init(RecvBuffer auto&& buffer) const {
    return Plan(make(allgather_call(buffer), FERRY_PERSISTENT));
  }

  Status broadcast(RecvBuffer auto&& buffer, int root) const {
    return run(broadcast_call(buffer, root));
  }
  [[nodiscard]] Request ibroadcast(RecvBuffer auto&& buffer, int root) const {
    return Request(make(broadcast_call(buffer, root), FERRY_NONBLOCKING));
  }
  [[nodiscard]] Plan broadcast_init(RecvBuffer auto&& buffer, int root) const {
    return Plan(make(broadcast_call(buffer, root), FERRY_PERSISTENT));
  }

 private:
  static Status run(const ferry_call& call) {
    return detail::status_of(ferry_collective(&call, nullptr));
  }
  [[nodiscard]] static detail::Handle make(ferry_call call, ferry_form form) {
    call.form = form;
    ferry_request raw = FERRY_REQUEST_NULL;
    detail::check(ferry_collective(&call, &raw));
    return detail::Handle(raw);
  }

  // The description of a call whose receive (or only) buffer is recv, in blocks of `each` elements.
  [[nodiscard]] ferry_call describe(ferry_operation operation, auto& recv, std::size_t each) const {
    using T = std::ranges::range_value_t<decltype(recv)>;
    ferry_call call{};
    call.size = sizeof call;
    call.operation = operation;
    call.form = FERRY_BLOCKING;
    call.flags = FERRY_NO_ERROR_HANDLER;
    call.sendbuf = MPI_IN_PLACE;
    call.recvbuf = std::ranges::data(recv);
    call.sendcount = call.recvcount = detail::items<T>(each);
    call.sendtype = call.recvtype = detail::Wire::type(detail::Tag<T>{});
    call.comm = comm_;
    return call;
  }
  [[nodiscard]] ferry_call alltoall_call(auto& send, auto& recv) const {
    const std::size_t each = block("alltoall: send", std::ranges::size(send));
    fits("alltoall", std::ranges::size(send), std::ranges::size(recv));
    ferry_call call = describe(FERRY_ALLTOALL, recv, each);
    call.sendbuf = std::ranges::data(send);
    return call;
  }
  [[nodiscard]] ferry_call alltoall_call(auto& buffer) const {
    return describe(FERRY_ALLTOALL, buffer, block("alltoall: buffer", std::ranges::size(buffer)));
  }
  [[nodiscard]] ferry_call allgather_call(auto& send, auto& recv) const {
    const std::size_t each = std::ranges::size(send);
    fits("allgather", each * static_cast<std::size_t>(size_), std::ranges::size(recv));
    ferry_call call = describe(FERRY_ALLGATHER, recv, each);
    call.sendbuf = std::ranges::data(send);
    return call;
  }
  [[nodiscard]] ferry_call allgather_call(auto& buffer) const {
    return describe(FERRY_ALLGATHER, buffer, block("allgather: buffer", std::ranges::size(buffer)));
  }
  [[nodiscard]] ferry_call broadcast_call(auto& buffer, int root) const {
    ferry_call call = describe(FERRY_BCAST, buffer, std::ranges::size(buffer));
    call.root = root;
    return call;
  }

  // The elements of one of size() equal blocks.
  [[nodiscard]] std::size_t block(const std::string& what, std::size_t elements) const {
    const auto ranks = static_cast<std::size_t>(size_);
    if (elements % ranks == 0) return elements / ranks;
    throw Error(
        MPI_ERR_COUNT, what + " has " + std::to_string(elements) + " elements, not a multiple of " +
                           std::to_string(ranks) + " ranks");
  }
  static void fits(const std::string& what, std::size_t needed, std::size_t elements) {
    if (elements >= needed) return;
    throw Error(
        MPI_ERR_COUNT, what + ": recv has " + std::to_string(elements) + " elements, but " +
                           std::to_string(needed) + " arrive");
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

} // namespace ferry
