// SPDX-License-Identifier: MIT
#include "configuration.hpp"

#include <algorithm>
#include <vector>

#include "exchange.hpp"
#include "reduction.hpp"

namespace ferry::test {
namespace {

const std::vector<Form>& all_forms() {
  static const std::vector<Form> forms = [] {
    std::vector<Form> made;
    for (int coll = 0; coll < kColls; ++coll) {
      for (int way = 0; way < kWays; ++way) {
        for (const bool large : {false, true}) {
          for (const bool in_place : {false, true}) {
            const Form form{static_cast<Coll>(coll), static_cast<Way>(way), large, in_place};
            if (large && !has_large(form.coll)) continue;
            if (in_place && !has_in_place(form.coll)) continue;
            made.push_back(form);
          }
        }
      }
    }
    return made;
  }();
  return forms;
}

// Around what a slot, a line and a page hold, and something long.
std::int64_t block_bytes(Dice& dice) {
  constexpr std::int64_t kEdges[] = {0, 1, 63, 64, 65};
  switch (dice.between(1, 16)) {
    case 1:
    case 2:
    case 3:
    case 4:
      return dice.pick(kEdges);
    case 5:
    case 6:
    case 7:
      return 4064 + dice.between(-16, 16);
    case 8:
      return 65536;
    default:
      return dice.between(0, 600);
  }
}

} // namespace

void set_elements(Configuration& c, std::int64_t bytes, Dice& dice) {
  const std::int64_t width =
      reduces(c.form.coll) ? bytes_of_reduction(c.reduction) : bytes_of(c.basic);
  constexpr std::int64_t kGroups[] = {1, 1, 2, 3, 4, 6};
  c.group = dice.pick(kGroups);
  c.elements = (bytes + width - 1) / width;
  if (c.group > c.elements) c.group = 1;
  c.elements -= c.elements % c.group;
  c.empty_types = dice.one_in(4);
}

Configuration configuration(std::uint64_t run_seed, std::uint64_t index) {
  const std::vector<Form>& forms = all_forms();
  Configuration c;
  c.seed = mix(mix(run_seed) + index);
  c.form = forms[index % forms.size()];
  Dice dice(c.seed);
  c.comm = static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(zoo().size()) - 1));
  c.root = static_cast<int>(dice.between(0, 1000));
  c.basic = static_cast<Basic>(dice.between(0, kBasics - 1));
  c.reduction = static_cast<int>(dice.between(0, kReductions - 1));
  set_elements(c, block_bytes(dice), dice);
  return c;
}

std::string text_of(const Configuration& c, const Comm& comm) {
  constexpr const char* kNames[] = {"byte", "word", "number", "record"};
  std::string text = name_of(c.form) + " on " + comm.name();
  if (has_root(c.form.coll)) text += ", root " + std::to_string(c.root) + " modulo its size";
  if (reduces(c.form.coll)) {
    text += ", reduction " + std::to_string(c.reduction);
  } else {
    text += std::string(", ") + kNames[static_cast<int>(c.basic)];
  }
  text += ", " + std::to_string(c.elements) + " elements in units of " + std::to_string(c.group);
  return text + (c.empty_types ? ", types without bytes" : "");
}

bool wrong_below(const Configuration& c, const Comm& comm) {
  const auto& [coll, way, large, in_place] = c.form;
  const bool persistent = way == Way::persistent;
  // Later starts move the data of the first, or of the call.
  if (persistent && (coll == Coll::allgather || coll == Coll::gather || coll == Coll::scatter)) {
    return true;
  }
  if (coll == Coll::alltoallw && in_place && way != Way::blocking) return true;
  // Crashes at a root that is not 0.
  if (coll == Coll::reduce && in_place && way == Way::blocking) return true;
  // Displacements are not looked at.
  if (coll == Coll::allgatherv && comm.size() == 1) return true;
  // Long messages of types with gaps are cut in pieces in the wrong place.
  if (c.elements * bytes_of(c.basic) > 8000 && !reduces(coll)) return true;
  // Ranks decide by counts, and not by bytes, whether there is a message.
  return c.empty_types;
}

bool wrong_beside(const Configuration& c) {
  return c.form.way == Way::persistent && reduces(c.form.coll) && is_of_program(c.reduction);
}

std::unique_ptr<Operation> make_operation(const Configuration& c, const Comm& comm) {
  if (reduces(c.form.coll)) return std::make_unique<Reduction>(c, comm);
  return std::make_unique<Exchange>(c, comm);
}

} // namespace ferry::test
