// SPDX-License-Identifier: MIT
#include "task.hpp"

#include "../support/pattern.hpp"
#include "../support/world.hpp"

namespace ferry::test {
namespace {

class Collective : public Task {
 public:
  Collective(const Configuration& c, const Comm& comm, int communicator)
      : operation_(make_operation(c, comm)),
        text_(text_of(c, comm) + ", communicator " + std::to_string(communicator)),
        communicator_(communicator),
        persistent_(c.form.way == Way::persistent) {}
  void prepare(std::uint64_t iteration) override { operation_->prepare(iteration); }
  int make(MPI_Request* request) override { return make_call(operation_->call(), request); }
  [[nodiscard]] std::string problem(const MPI_Status& /*status*/) const override {
    return operation_->problem();
  }
  [[nodiscard]] int communicator() const override { return communicator_; }
  [[nodiscard]] bool persistent() const override { return persistent_; }
  [[nodiscard]] std::string text() const override { return text_; }

 private:
  std::unique_ptr<Operation> operation_;
  std::string text_;
  int communicator_;
  bool persistent_;
};

class MessageHalf : public Task {
 public:
  explicit MessageHalf(const Message& message) : message_(message), data_(message.bytes + 1) {
    const int size = world().size;
    const int step = message.distance % size;
    peer_ = (world().rank + (message.sends ? step : size - step)) % size;
  }

  void prepare(std::uint64_t iteration) override {
    iteration_ = iteration;
    poison(data_.data(), data_.size(), iteration);
    if (message_.sends) fill(data_.data(), message_.bytes, stream());
    last_ = data_.back();
  }

  int make(MPI_Request* request) override {
    const auto bytes = static_cast<int>(message_.bytes);
    const auto [distance, tag, size, sends, persistent] = message_;
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (sends && persistent) {
      return MPI_Send_init(data_.data(), bytes, MPI_BYTE, peer_, tag, comm, request);
    }
    if (sends) return MPI_Isend(data_.data(), bytes, MPI_BYTE, peer_, tag, comm, request);
    if (persistent) {
      return MPI_Recv_init(data_.data(), bytes, MPI_BYTE, peer_, tag, comm, request);
    }
    return MPI_Irecv(data_.data(), bytes, MPI_BYTE, peer_, tag, comm, request);
  }

  [[nodiscard]] std::string problem(const MPI_Status& status) const override {
    if (first_difference(data_.data(), message_.bytes, stream())) return "wrong message";
    if (data_.back() != last_) return "more than the message was written";
    if (message_.sends) return "";
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const bool told = status.MPI_SOURCE == peer_ && status.MPI_TAG == message_.tag &&
                      bytes == static_cast<int>(message_.bytes);
    return told ? "" : "wrong status of a message";
  }

  [[nodiscard]] int communicator() const override { return -1; }
  [[nodiscard]] bool persistent() const override { return message_.persistent; }
  [[nodiscard]] std::string text() const override {
    return std::string(message_.persistent ? "persistent " : "") +
           (message_.sends ? "send" : "receive") + " of " + std::to_string(message_.bytes) +
           " bytes";
  }

 private:
  [[nodiscard]] Stream stream() const {
    const int own = world().rank;
    const std::uint64_t which = iteration_ * 64 + static_cast<std::uint64_t>(message_.tag);
    return message_.sends ? Stream{which, own, peer_} : Stream{which, peer_, own};
  }

  Message message_;
  int peer_ = 0;
  std::uint64_t iteration_ = 0;
  unsigned char last_ = 0;
  std::vector<unsigned char> data_;
};

} // namespace

std::unique_ptr<Task> make_collective(const Configuration& c, const Comm& comm, int communicator) {
  return std::make_unique<Collective>(c, comm, communicator);
}

std::unique_ptr<Task> make_message(const Message& message) {
  return std::make_unique<MessageHalf>(message);
}

} // namespace ferry::test
