// SPDX-License-Identifier: MIT
#include "reduction.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ferry::test {
namespace {

constexpr std::size_t kGuard = 64;

enum class Kind { int_sum, double_sum, long_max, bits, pair_min, short_min, map };

struct Pair {
  int value;
  int place;
};

// x -> factor * x + shift, modulo 2^64: composition is associative and not commutative.
struct Map {
  std::uint64_t factor;
  std::uint64_t shift;
};

template <class T>
T read(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(unsigned char* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

void make_element(Kind kind, std::uint64_t word, int rank, unsigned char* to) {
  const auto small = static_cast<int>(word % 2001) - 1000;
  switch (kind) {
    case Kind::int_sum:
      return write(to, small);
    case Kind::double_sum:
      return write(to, static_cast<double>(small) / 4); // exact in any order
    case Kind::long_max:
      return write(to, static_cast<long>(word));
    case Kind::bits:
      return write(to, static_cast<std::uint64_t>(word));
    case Kind::pair_min:
      return write(to, Pair{small % 3, rank});
    case Kind::short_min:
      return write(to, static_cast<short>(word));
    case Kind::map:
      break;
  }
  write(to, Map{word | 1, mix(word)});
}

template <class T, class Combine>
void combine_as(unsigned char* left, const unsigned char* right, const Combine& combine) {
  write(left, static_cast<T>(combine(read<T>(left), read<T>(right))));
}

Map after(Map left, Map right) {
  return {left.factor * right.factor, left.factor * right.shift + left.shift};
}

// left = left op right, where left is of lower ranks.
void combine(Kind kind, unsigned char* left, const unsigned char* right) {
  const auto sum = [](auto a, auto b) { return a + b; };
  const auto largest = [](auto a, auto b) { return std::max(a, b); };
  const auto least = [](auto a, auto b) { return std::min(a, b); };
  switch (kind) {
    case Kind::int_sum:
      return combine_as<int>(left, right, sum);
    case Kind::double_sum:
      return combine_as<double>(left, right, sum);
    case Kind::long_max:
      return combine_as<long>(left, right, largest);
    case Kind::bits:
      return combine_as<std::uint64_t>(left, right, [](auto a, auto b) { return a ^ b; });
    case Kind::pair_min:
      return combine_as<Pair>(left, right, [](Pair a, Pair b) {
        if (a.value != b.value) return a.value < b.value ? a : b;
        return a.place < b.place ? a : b;
      });
    case Kind::short_min:
      return combine_as<short>(left, right, least);
    case Kind::map:
      break;
  }
  combine_as<Map>(left, right, after);
}

void compose_maps(void* in, void* inout, int* count, MPI_Datatype*) {
  auto* left = static_cast<unsigned char*>(in);
  auto* right = static_cast<unsigned char*>(inout);
  for (int i = 0; i < *count; ++i, left += sizeof(Map), right += sizeof(Map)) {
    write(right, after(read<Map>(left), read<Map>(right)));
  }
}

MPI_Datatype type_of(Kind kind) {
  constexpr int kLast = static_cast<int>(Kind::map);
  const MPI_Datatype types[kLast] = {MPI_INT,      MPI_DOUBLE, MPI_LONG,
                                     MPI_UINT64_T, MPI_2INT,   MPI_SHORT};
  return types[static_cast<int>(kind)];
}

MPI_Op op_of(Kind kind) {
  constexpr int kLast = static_cast<int>(Kind::map);
  const MPI_Op ops[kLast] = {MPI_SUM, MPI_SUM, MPI_MAX, MPI_BXOR, MPI_MINLOC, MPI_MIN};
  return ops[static_cast<int>(kind)];
}

std::size_t width_of(Kind kind) {
  constexpr std::size_t kWidths[kReductions] = {4, 8, 8, 8, 8, 2, 16};
  return kWidths[static_cast<int>(kind)];
}

} // namespace

std::int64_t bytes_of_reduction(int reduction) {
  return static_cast<std::int64_t>(width_of(static_cast<Kind>(reduction)));
}

bool is_of_program(int reduction) {
  return static_cast<Kind>(reduction) == Kind::map;
}

Reduction::Reduction(const Configuration& c, const Comm& comm)
    : c_(c), rank_(comm.rank()), size_(comm.size()), root_(c.root % comm.size()) {
  const Kind kind = static_cast<Kind>(c.reduction);
  const Coll coll = c.form.coll;
  call_.form = c.form;
  call_.comm = comm.get();
  call_.root = root_;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (kind == Kind::map) {
    MPI_Type_contiguous(2, MPI_UINT64_T, &made_type_);
    MPI_Type_commit(&made_type_);
    MPI_Op_create(compose_maps, 0, &made_op_);
    type = made_type_;
    call_.op = made_op_;
  } else {
    type = type_of(kind);
    call_.op = op_of(kind);
  }
  const bool scatters = coll == Coll::reduce_scatter || coll == Coll::reduce_scatter_block;
  call_.received.counts.clear();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) first_ = all_;
    call_.received.counts.push_back(counted(rank));
    all_ += counted(rank);
    if (!scatters) break;
  }
  own_ = scatters ? counted(rank_) : all_;
  if (!scatters) first_ = 0;
  gets_result_ = coll != Coll::reduce || rank_ == root_;
  call_.received.types = {type};
  call_.received.set();
  call_.sent.set();
  const std::size_t width = width_of(kind);
  const auto bytes = [&](std::int64_t n) { return static_cast<std::size_t>(n) * width; };
  const bool in_place = c.form.in_place && gets_result_;
  send_.resize(bytes(in_place ? 0 : all_) + 2 * kGuard);
  recv_.resize(bytes(in_place ? all_ : own_) + 2 * kGuard);
  call_.send = in_place ? MPI_IN_PLACE : send_.data() + kGuard;
  call_.recv = gets_result_ ? recv_.data() + kGuard : nullptr;
}

Reduction::~Reduction() {
  if (made_type_ != MPI_DATATYPE_NULL) MPI_Type_free(&made_type_);
  if (made_op_ != MPI_OP_NULL) MPI_Op_free(&made_op_);
}

std::int64_t Reduction::counted(int rank) const {
  if (c_.form.coll != Coll::reduce_scatter) return c_.elements;
  Dice dice(c_.seed ^ static_cast<std::uint64_t>(1 + rank));
  const std::int64_t choices[] = {0, c_.elements, c_.elements / 2, dice.between(0, c_.elements)};
  return dice.pick(choices);
}

std::vector<unsigned char> Reduction::input(int rank, std::uint64_t iteration) const {
  const Kind kind = static_cast<Kind>(c_.reduction);
  const std::size_t width = width_of(kind);
  std::vector<unsigned char> data(static_cast<std::size_t>(all_) * width);
  const std::uint64_t seed = seed_of({iteration, rank, kEveryone});
  for (std::size_t i = 0; i < static_cast<std::size_t>(all_); ++i) {
    make_element(kind, pattern_word(seed, i), rank, data.data() + i * width);
  }
  return data;
}

void Reduction::prepare(std::uint64_t iteration) {
  const Kind kind = static_cast<Kind>(c_.reduction);
  const std::size_t width = width_of(kind);
  fill(send_.data(), send_.size(), {iteration, -3, -5});
  fill(recv_.data(), recv_.size(), {iteration, -3, -6});
  const std::vector<unsigned char> own = input(rank_, iteration);
  auto* target = call_.send == MPI_IN_PLACE ? recv_.data() : send_.data();
  std::copy(own.begin(), own.end(), target + kGuard);
  send_before_ = send_;
  recv_before_ = recv_;
  result_ = input(0, iteration);
  for (int rank = 1; rank < size_; ++rank) {
    const std::vector<unsigned char> next = input(rank, iteration);
    for (std::size_t at = 0; at < next.size(); at += width) {
      combine(kind, result_.data() + at, next.data() + at);
    }
  }
}

std::string Reduction::problem() const {
  std::string text;
  if (send_ != send_before_) text += "the send buffer has changed; ";
  if (!gets_result_) {
    if (recv_ != recv_before_) text += "a buffer that is not this call's has changed; ";
    return text;
  }
  const std::size_t width = width_of(static_cast<Kind>(c_.reduction));
  const auto first = result_.begin() + static_cast<std::ptrdiff_t>(width) * first_;
  const auto bytes = static_cast<std::ptrdiff_t>(width) * own_;
  if (!std::equal(first, first + bytes, recv_.begin() + kGuard)) text += "wrong result; ";
  // In place, what lies between the result and the end of the buffer is nobody's.
  const bool guards = std::equal(recv_.begin(), recv_.begin() + kGuard, recv_before_.begin()) &&
                      std::equal(recv_.end() - kGuard, recv_.end(), recv_before_.end() - kGuard);
  return guards ? text : text + "bytes around the result have changed; ";
}

} // namespace ferry::test
