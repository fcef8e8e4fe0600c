// SPDX-License-Identifier: MIT
// What the device compiler made: argument TEST_AMD_PROCESSORS names what must be there.
#include <elf.h>

#include <doctest/doctest.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lib/amd/kernels/kernels.hpp"
#include "lib/amd/kernels/shape.hpp"

namespace {

using namespace ferry;
using namespace ferry::amd;

std::vector<std::string> processors() {
  const char* const text = std::getenv("TEST_AMD_PROCESSORS");
  std::istringstream words(text != nullptr ? text : "");
  std::vector<std::string> found;
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

// The first dwords of a kernel descriptor.
struct Descriptor {
  std::uint32_t shared_bytes;
  std::uint32_t private_bytes;
  std::uint32_t argument_bytes;
};

template <class Entry>
const Entry* at(const CodeObject& object, std::uint64_t offset) {
  REQUIRE(offset + sizeof(Entry) <= object.bytes);
  return reinterpret_cast<const Entry*>(object.image + offset);
}

// Descriptors of all kernels, by name. Sections have their address as offset or lie behind it by
// whole pages, so a symbol is looked up in its own section.
std::map<std::string, Descriptor> kernels_of(const CodeObject& object) {
  const auto* const header = at<Elf64_Ehdr>(object, 0);
  const auto section = [&](std::uint64_t index) {
    return at<Elf64_Shdr>(object, header->e_shoff + index * header->e_shentsize);
  };
  std::map<std::string, Descriptor> found;
  for (std::uint64_t s = 0; s < header->e_shnum; ++s) {
    if (section(s)->sh_type != SHT_DYNSYM) continue;
    const std::uint64_t names = section(section(s)->sh_link)->sh_offset;
    for (std::uint64_t i = 0; i < section(s)->sh_size / sizeof(Elf64_Sym); ++i) {
      const auto* const symbol =
          at<Elf64_Sym>(object, section(s)->sh_offset + i * sizeof(Elf64_Sym));
      const std::string name = at<char>(object, names + symbol->st_name);
      if (!name.ends_with(".kd")) continue;
      const Elf64_Shdr* const home = section(symbol->st_shndx);
      found[name.substr(0, name.size() - 3)] =
          *at<Descriptor>(object, home->sh_offset + symbol->st_value - home->sh_addr);
    }
  }
  return found;
}

// The runtime adds up to this many bytes of its own behind the arguments.
constexpr std::uint32_t kHiddenBytes = 256;

bool takes(const Descriptor& kernel, std::size_t argument_bytes) {
  const auto own = static_cast<std::uint32_t>(argument_bytes);
  return kernel.argument_bytes == own || kernel.argument_bytes == own + kHiddenBytes;
}

} // namespace

TEST_CASE("code objects: one for each processor, found by the names that devices give") {
  const std::vector<std::string> expected = processors();
  REQUIRE(!expected.empty());
  CHECK(code_objects().count == expected.size());
  for (const std::string& name : expected) {
    CAPTURE(name);
    REQUIRE(code_object_for(name.c_str()) != nullptr);
    CHECK(code_object_for((name + ":sramecc+:xnack-").c_str()) == code_object_for(name.c_str()));
    CHECK(code_object_for((name + "0").c_str()) == nullptr);
  }
  CHECK(code_object_for("gfx1250") == nullptr);
  CHECK(code_object_for("") == nullptr);
}

TEST_CASE("code objects: ELF files for their processor") {
  const std::map<std::string, std::uint32_t> machines = {
      {"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
  for (std::size_t i = 0; i < code_objects().count; ++i) {
    const CodeObject& object = code_objects().first[i];
    CAPTURE(object.processor);
    const auto* const header = at<Elf64_Ehdr>(object, 0);
    CHECK(std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0);
    CHECK(header->e_machine == 224); // EM_AMDGPU
    const auto machine = machines.find(object.processor);
    if (machine != machines.end()) CHECK((header->e_flags & 0xff) == machine->second);
  }
}

TEST_CASE("code objects: every kernel takes the structure that the host fills, without scratch") {
  const std::map<std::string, std::size_t> arguments = {
      {kLowLatencyKernel, sizeof(device::LowLatencyArgs)},
      {kWideKernel, sizeof(device::WideArgs)},
      {kStartKernel, sizeof(StartArgs)},
      {kPutSignalKernel, sizeof(PutSignalArgs)}};
  REQUIRE(code_objects().count != 0);
  for (std::size_t i = 0; i < code_objects().count; ++i) {
    CAPTURE(code_objects().first[i].processor);
    const auto kernels = kernels_of(code_objects().first[i]);
    CHECK(kernels.size() == arguments.size());
    for (const auto& [name, bytes] : arguments) {
      CAPTURE(name);
      REQUIRE(kernels.contains(name));
      CHECK(takes(kernels.at(name), bytes));
      CHECK(kernels.at(name).private_bytes == 0);
      CHECK(kernels.at(name).shared_bytes <= 64);
    }
  }
}

TEST_CASE("kernel shapes: grids are resident, and all ranks have the same (row 51)") {
  for (const std::uint64_t bytes :
       {0ull, 2048ull, 2049ull, 32768ull, 32769ull, 1ull << 30, 1ull << 40}) {
    for (const std::uint32_t ranks : {1u, 2u, 8u, 64u}) {
      for (const std::uint32_t units : {1u, 7u, 38u, 104u, 304u}) {
        const KernelShape shape = kernel_shape(bytes, ranks, units);
        if (shape.kernel == nullptr) {
          CHECK(units < ranks - 1);
          continue;
        }
        CHECK(shape.blocks >= 1);
        CHECK(shape.blocks <= units);
        CHECK(shape.lanes <= kMaxLanes);
        const bool wide = std::string(shape.kernel) == kWideKernel;
        CHECK(wide == (bytes > 32768));
        if (wide) CHECK(shape.blocks == (ranks > 1 ? ranks - 1 : 1) * shape.parts);
      }
    }
  }
}
