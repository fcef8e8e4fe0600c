// SPDX-License-Identifier: MIT
#include "side.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

namespace ferry::test {
namespace {

constexpr std::int64_t kGuard = 64;
constexpr std::int64_t kWholeUpTo = 20000; // elements: longer types are spelled in units

// Numbers from 0 in an order of the dice.
std::vector<std::size_t> shuffled(Dice& dice, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[dice.word() % i]);
  return order;
}

// A divisor of the group: how many elements one element of the type has.
std::int64_t unit_of(Dice& dice, std::int64_t group) {
  std::int64_t unit = dice.between(1, group);
  while (group % unit != 0) --unit;
  return unit;
}

} // namespace

Bytes::Bytes(std::size_t size, bool of_mpi) : size_(size), of_mpi_(of_mpi) {
  if (of_mpi) {
    MPI_Alloc_mem(static_cast<MPI_Aint>(size), MPI_INFO_NULL, &data_);
  } else {
    data_ = static_cast<unsigned char*>(std::malloc(size));
  }
  if (data_ == nullptr) throw std::bad_alloc();
}

Bytes::~Bytes() {
  if (of_mpi_) {
    MPI_Free_mem(data_);
  } else {
    std::free(data_);
  }
}

Side::Side(Dice& dice, const Spread& spread, Placing placing, std::vector<Part> parts)
    : parts_(std::move(parts)), blocks_(parts_.size()) {
  if (placing == Placing::typed) {
    place_with_types(dice, spread);
  } else {
    add_common_type(dice, spread, placing);
    if (placing == Placing::regular) place_in_a_row();
    if (placing == Placing::counted) place_with_displacements(dice);
  }
  vectors_.set();
  make_memory(dice);
}

// One type for all parts.
void Side::add_common_type(Dice& dice, const Spread& spread, Placing placing) {
  const std::int64_t first = parts_.front().elements;
  std::int64_t unit = unit_of(dice, spread.group);
  const bool regular = placing == Placing::regular;
  if (regular && first > 0 && first <= kWholeUpTo && dice.one_in(4)) unit = first;
  std::int64_t columns = 8; // for displacements before the first block
  for (const Part& part : parts_) columns += part.elements / unit + 3;
  if (columns * unit > 4 * kWholeUpTo) columns = 0;
  const bool nothing = spread.empty_types && regular && first == 0 && dice.one_in(2);
  types_.push_back(nothing ? spell_nothing(dice) : spell(dice, spread.basic, unit, columns));
  vectors_.types = {types_.front().type};
  vectors_.counts.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    blocks_[i].count = nothing ? 3 : parts_[i].elements / unit;
    vectors_.counts.push_back(blocks_[i].count);
  }
}

void Side::place_in_a_row() {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].offset = static_cast<std::int64_t>(i) * blocks_[i].count * types_.front().extent;
  }
}

// In any order, with gaps, from before the address on.
void Side::place_with_displacements(Dice& dice) {
  vectors_.displs.assign(blocks_.size(), 0);
  std::int64_t at = dice.between(-3, 3);
  for (const std::size_t i : shuffled(dice, blocks_.size())) {
    at += dice.between(0, 2);
    vectors_.displs[i] = at;
    blocks_[i].offset = at * types_.front().extent;
    at += blocks_[i].count;
  }
}

void Side::place_with_types(Dice& dice, const Spread& spread) {
  vectors_.counts.assign(blocks_.size(), 0);
  vectors_.displs.assign(blocks_.size(), 0);
  vectors_.types.assign(blocks_.size(), MPI_DATATYPE_NULL);
  types_.resize(blocks_.size());
  std::int64_t at = dice.between(-100, 100);
  for (const std::size_t i : shuffled(dice, blocks_.size())) {
    const std::int64_t elements = parts_[i].elements;
    std::int64_t unit = unit_of(dice, spread.group);
    if (elements > 0 && elements <= kWholeUpTo && dice.one_in(2)) unit = elements;
    const bool nothing = spread.empty_types && elements == 0 && dice.one_in(2);
    const std::int64_t columns = elements < kWholeUpTo ? elements / unit + 1 : 0;
    // A type that is none stands beside a count of 0.
    const bool null = elements == 0 && !nothing && dice.one_in(2);
    if (!null) {
      types_[i] = nothing ? spell_nothing(dice) : spell(dice, spread.basic, unit, columns);
    }
    Block& block = blocks_[i];
    block = {i, nothing ? 2 : elements / unit, 0};
    std::int64_t low = 0;
    std::int64_t high = -1;
    for (std::int64_t k = 0; k < elements * bytes_of(spread.basic); ++k) {
      const std::int64_t here = place(block, static_cast<std::size_t>(k));
      low = k == 0 ? here : std::min(low, here);
      high = k == 0 ? here : std::max(high, here);
    }
    block.offset = at - low;
    at += high - low + 1 + dice.between(0, 9);
    vectors_.counts[i] = block.count;
    vectors_.displs[i] = block.offset;
    vectors_.types[i] = types_[i].type;
  }
}

std::int64_t Side::place(const Block& block, std::size_t index) const {
  const Spelled& type = spelled(block);
  const std::size_t each = type.places.size();
  return block.offset + static_cast<std::int64_t>(index / each) * type.extent +
         type.places[index % each];
}

void Side::make_memory(Dice& dice) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const Block& block : blocks_) {
    // An extent is not below 0 here, so the first and the last element touch the outermost bytes.
    if (block.count == 0) continue;
    for (const std::int64_t here : spelled(block).places) {
      low = std::min(low, block.offset + here);
      high = std::max(high, block.offset + (block.count - 1) * spelled(block).extent + here + 1);
    }
  }
  const std::int64_t odd = dice.between(0, 3) == 0 ? dice.between(0, 15) : 0;
  const auto size = static_cast<std::size_t>(high - low + 2 * kGuard + odd);
  memory_ = std::make_unique<Bytes>(size, dice.one_in(3));
  expected_.resize(size);
  base_ = memory_->data() + kGuard + odd - low;
}

void Side::free_types() {
  for (Spelled& type : types_) type.free();
}

void Side::begin(std::uint64_t iteration) {
  const Stream noise{iteration ^ 0x5ca1ab1eULL, -3, -5};
  fill(memory_->data(), memory_->size(), noise);
  std::memcpy(expected_.data(), memory_->data(), expected_.size());
}

void Side::write(
    unsigned char* base, std::size_t index, std::uint64_t iteration, const Part& part) const {
  const Block& block = blocks_[index];
  const std::size_t bytes = static_cast<std::size_t>(block.count) * spelled(block).places.size();
  std::vector<unsigned char> data(bytes);
  fill(data.data(), bytes, {iteration, part.sender, part.receiver});
  for (std::size_t k = 0; k < bytes; ++k) base[place(block, k)] = data[k];
}

void Side::put(std::size_t index, std::uint64_t iteration, const Part& part) {
  write(base_, index, iteration, part);
  expect(index, iteration, part);
}

void Side::expect(std::size_t index, std::uint64_t iteration, const Part& part) {
  write(expected_.data() + (base_ - memory_->data()), index, iteration, part);
}

std::string Side::problem() const {
  if (std::memcmp(memory_->data(), expected_.data(), expected_.size()) == 0) return "";
  std::size_t first = 0;
  std::size_t wrong = 0;
  for (std::size_t i = expected_.size(); i-- > 0;) {
    if (memory_->data()[i] == expected_[i]) continue;
    first = i;
    ++wrong;
  }
  const auto at = static_cast<std::int64_t>(first) - (base_ - memory_->data());
  std::string text = std::to_string(wrong) + " bytes wrong, the first at " + std::to_string(at);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t bytes =
        static_cast<std::size_t>(blocks_[i].count) * spelled(blocks_[i]).places.size();
    for (std::size_t k = 0; k < bytes; ++k) {
      if (place(blocks_[i], k) == at) {
        return text + ", byte " + std::to_string(k) + " of block " + std::to_string(i);
      }
    }
  }
  return text + ", outside of all blocks";
}

bool Side::overlaps() const {
  std::vector<bool> used(expected_.size());
  for (const Block& block : blocks_) {
    const std::size_t bytes = static_cast<std::size_t>(block.count) * spelled(block).places.size();
    for (std::size_t k = 0; k < bytes; ++k) {
      const auto at = static_cast<std::size_t>(place(block, k) + (base_ - memory_->data()));
      if (used[at]) return true;
      used[at] = true;
    }
  }
  return false;
}

} // namespace ferry::test
