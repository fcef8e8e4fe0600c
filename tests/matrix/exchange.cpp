// SPDX-License-Identifier: MIT
#include "exchange.hpp"

#include <utility>

namespace ferry::test {
namespace {

bool is_all_to_all(Coll coll) {
  return coll == Coll::alltoall || coll == Coll::alltoallv || coll == Coll::alltoallw;
}

bool to_everyone(Coll coll) {
  return coll == Coll::allgather || coll == Coll::allgatherv || coll == Coll::bcast;
}

bool gathers(Coll coll) {
  return coll == Coll::gather || coll == Coll::gatherv;
}

bool scatters(Coll coll) {
  return coll == Coll::scatter || coll == Coll::scatterv;
}

bool has_own_counts(Coll coll) {
  return coll == Coll::alltoallv || coll == Coll::alltoallw || coll == Coll::allgatherv ||
         coll == Coll::gatherv || coll == Coll::scatterv;
}

Placing sending(Coll coll) {
  if (coll == Coll::alltoallw) return Placing::typed;
  return coll == Coll::alltoallv || coll == Coll::scatterv ? Placing::counted : Placing::regular;
}

Placing receiving(Coll coll) {
  if (coll == Coll::alltoallw) return Placing::typed;
  const bool counted = coll == Coll::alltoallv || coll == Coll::allgatherv || coll == Coll::gatherv;
  return counted ? Placing::counted : Placing::regular;
}

// What MPI must not look at.
Vectors ignored() {
  Vectors vectors;
  vectors.counts = {0};
  vectors.displs = {-77};
  vectors.set();
  return vectors;
}

} // namespace

Exchange::Exchange(const Configuration& c, const Comm& comm)
    : c_(c), rank_(comm.rank()), size_(comm.size()), root_(c.root % comm.size()) {
  call_.form = c.form;
  call_.comm = comm.get();
  call_.root = root_;
  call_.sent = ignored();
  call_.received = ignored();
  if (c.form.coll == Coll::barrier) return;
  describe();
  build();
  fill_call();
}

// Of the variants with counts a third of the blocks are empty, and some are of other lengths.
std::int64_t Exchange::elements(int sender, int receiver) const {
  if (!has_own_counts(c_.form.coll)) return c_.elements;
  // Data that replace each other are of one length.
  if (is_all_to_all(c_.form.coll) && c_.form.in_place && sender > receiver) {
    std::swap(sender, receiver);
  }
  if (c_.form.coll == Coll::allgatherv || c_.form.coll == Coll::gatherv) receiver = 0;
  if (c_.form.coll == Coll::scatterv) sender = 0;
  Dice dice(c_.seed ^ static_cast<std::uint64_t>(1 + sender * 1000 + receiver));
  const std::int64_t groups = c_.elements / c_.group;
  constexpr std::int64_t kFew = 5;
  const std::int64_t choices[] = {
      0, groups, groups / 2, groups, dice.between(0, kFew), dice.between(0, groups)};
  return c_.group * dice.pick(choices);
}

void Exchange::add_sent(int receiver) {
  const bool everyone = to_everyone(c_.form.coll);
  sent_.push_back({elements(rank_, receiver), rank_, everyone ? kEveryone : receiver});
}

void Exchange::add_received(int sender) {
  const bool everyone = to_everyone(c_.form.coll);
  received_.push_back({elements(sender, rank_), sender, everyone ? kEveryone : rank_});
}

// Which blocks leave this rank and which come to it.
void Exchange::describe() {
  const Coll coll = c_.form.coll;
  const bool at_root = rank_ == root_;
  for (int peer = 0; peer < size_; ++peer) {
    if (is_all_to_all(coll) || (scatters(coll) && at_root)) add_sent(peer);
    if (is_all_to_all(coll) || coll == Coll::allgather || coll == Coll::allgatherv ||
        (gathers(coll) && at_root)) {
      add_received(peer);
    }
  }
  if (coll == Coll::allgather || coll == Coll::allgatherv || (coll == Coll::bcast && at_root)) {
    add_sent(0);
  }
  if (gathers(coll)) add_sent(root_);
  if (scatters(coll) || (coll == Coll::bcast && !at_root)) add_received(root_);
}

// In place the receive buffer of an exchange holds what is sent. At the root of a scatter its own
// block stays where it is, at that of a gather it is where it comes to.
void Exchange::build() {
  const Coll coll = c_.form.coll;
  const bool in_place = c_.form.in_place;
  const bool at_root = rank_ == root_;
  const bool no_send = in_place && (is_all_to_all(coll) || coll == Coll::allgather ||
                                    coll == Coll::allgatherv || (gathers(coll) && at_root));
  const bool no_recv = in_place && scatters(coll) && at_root;
  const Spread spread{c_.basic, c_.group, c_.empty_types};
  const auto own = static_cast<std::uint64_t>(rank_);
  Dice dice(c_.seed + 1000003 * (own + 1));
  if (!no_send && !sent_.empty()) {
    send_ = std::make_unique<Side>(dice, spread, sending(coll), sent_);
  }
  if (!no_recv && !received_.empty()) {
    recv_ = std::make_unique<Side>(dice, spread, receiving(coll), received_);
  }
}

void Exchange::fill_call() {
  if (send_) {
    call_.send = send_->address();
    call_.sent = send_->vectors();
  } else if (c_.form.in_place && !scatters(c_.form.coll)) {
    call_.send = MPI_IN_PLACE;
  }
  if (recv_) {
    call_.recv = recv_->address();
    call_.received = recv_->vectors();
  } else if (c_.form.in_place && scatters(c_.form.coll)) {
    call_.recv = MPI_IN_PLACE;
  }
  if (c_.form.coll == Coll::bcast && send_) {
    call_.recv = send_->address();
    call_.received = send_->vectors();
  }
}

// In place the data to send lies in the receive buffer, at the place of what replaces it.
void Exchange::prepare(std::uint64_t iteration) {
  if (send_) {
    send_->begin(iteration);
    for (std::size_t i = 0; i < sent_.size(); ++i) send_->put(i, iteration, sent_[i]);
  }
  if (!recv_) return;
  recv_->begin(iteration + 1000);
  const bool all_to_all = is_all_to_all(c_.form.coll);
  for (std::size_t i = 0; i < received_.size(); ++i) {
    const Part& part = received_[i];
    if (!send_ && all_to_all) {
      recv_->put(i, iteration, {part.elements, rank_, part.sender});
    } else if (!send_ && part.sender == rank_) {
      recv_->put(i, iteration, part);
    }
    recv_->expect(i, iteration, part);
  }
}

std::string Exchange::problem() const {
  std::string text;
  if (send_ && !send_->problem().empty()) text += "send buffer: " + send_->problem() + "; ";
  if (recv_ && !recv_->problem().empty()) text += "receive buffer: " + recv_->problem() + "; ";
  if (recv_ && recv_->overlaps()) text += "the test is wrong: blocks overlap";
  return text;
}

void Exchange::free_types() {
  if (send_) send_->free_types();
  if (recv_) recv_->free_types();
}

} // namespace ferry::test
