// SPDX-License-Identifier: MIT
// Errors, requests and plans of ferry.hpp, which says how they are meant.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <mpi.h>

#include <ferry/ferry.h>

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

} // namespace ferry
