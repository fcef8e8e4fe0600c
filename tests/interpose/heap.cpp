// SPDX-License-Identifier: MIT
// A program whose large allocations come from shared pages, and that does with them all that the C
// library allows. An argument "off": the same without.
#include <malloc.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kLarge = 1 << 20;
constexpr std::size_t kSmallest = 64 << 10;

int failures = 0;
bool expected = true;

void check(bool condition, const char* what, int line) {
  if (!condition && ++failures < 20) std::fprintf(stderr, "heap.cpp:%d: %s\n", line, what);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

// Does the memory map of this process say so?
bool is_shared(const void* pointer) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (address >= begin && address < end) return line.find("memfd:ferry") != std::string::npos;
  }
  return false;
}

unsigned char* bytes_of(void* block) {
  return static_cast<unsigned char*>(block);
}

void fill(void* block, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    bytes_of(block)[i] = static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(seed));
  }
}

bool holds(void* block, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (bytes_of(block)[i] != static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(seed))) {
      return false;
    }
  }
  return true;
}

void border() {
  void* small = std::malloc(kSmallest - 1);
  void* large = std::malloc(kSmallest);
  CHECK(!is_shared(small));
  CHECK(is_shared(large) == expected);
  CHECK(malloc_usable_size(large) >= kSmallest && malloc_usable_size(small) >= kSmallest - 1);
  CHECK(malloc_usable_size(nullptr) == 0);
  fill(large, kSmallest, 1);
  std::free(small);
  std::free(large);
  std::free(nullptr);
  const auto array = std::make_unique<char[]>(kLarge);
  CHECK(is_shared(array.get()) == expected);
  std::vector<int> grows;
  for (int i = 0; i < 300000; ++i) grows.push_back(i);
  bool right = true;
  for (int i = 0; i < 300000; ++i) right = right && grows[static_cast<std::size_t>(i)] == i;
  CHECK(right && is_shared(grows.data()) == expected);
}

// Fresh or used before, memory of calloc is zero.
void zeroed() {
  for (int round = 0; round < 4; ++round) {
    void* block = std::calloc(kLarge / 8, 8);
    bool zero = true;
    for (std::size_t i = 0; i < kLarge; ++i) zero = zero && bytes_of(block)[i] == 0;
    CHECK(zero);
    fill(block, kLarge, round);
    std::free(block);
  }
  // A size that overflows is refused. The compiler must not know it.
  volatile std::size_t many = SIZE_MAX / 2;
  CHECK(std::calloc(many, 4) == nullptr);
  CHECK(reallocarray(nullptr, many, 4) == nullptr);
}

void resized() {
  static const std::size_t sizes[] = {100,    kSmallest - 1, kSmallest, kLarge,    3 * kLarge,
                                      kLarge, kSmallest,     500,       kSmallest, 8 * kLarge};
  void* block = std::malloc(10);
  fill(block, 10, 5);
  std::size_t before = 10;
  for (const std::size_t bytes : sizes) {
    block = std::realloc(block, bytes);
    CHECK(holds(block, bytes < before ? bytes : before, 5));
    CHECK(malloc_usable_size(block) >= bytes);
    fill(block, bytes, 5);
    before = bytes;
  }
  CHECK(holds(block, before, 5));
  std::free(block);
  void* growing = std::malloc(1000);
  for (std::size_t bytes = 1000; bytes < 4 * kLarge; bytes += 10000) {
    growing = std::realloc(growing, bytes);
    bytes_of(growing)[bytes - 1] = 1;
  }
  std::free(growing);
}

void aligned() {
  for (std::size_t alignment = 8; alignment <= (2 << 20); alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{100}, kSmallest, kLarge}) {
      void* block = nullptr;
      CHECK(posix_memalign(&block, alignment, bytes) == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      fill(block, bytes, 3);
      void* other = std::aligned_alloc(alignment, bytes / alignment * alignment + alignment);
      CHECK(reinterpret_cast<std::uintptr_t>(other) % alignment == 0);
      void* third = memalign(alignment, bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(third) % alignment == 0);
      std::free(other);
      CHECK(holds(block, bytes, 3));
      std::free(third);
      std::free(block);
    }
  }
  void* untouched = &failures;
  CHECK(posix_memalign(&untouched, 24, kLarge) == EINVAL && untouched == &failures);
  void* page = valloc(kLarge);
  CHECK(reinterpret_cast<std::uintptr_t>(page) % 4096 == 0);
  std::free(page);
}

// Blocks made by one thread and freed by another, with both at it at once.
void threads() {
  constexpr int kBlocks = 200;
  std::vector<void*> blocks(kBlocks);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[static_cast<std::size_t>(i)] = std::malloc(kSmallest + static_cast<std::size_t>(i));
    fill(blocks[static_cast<std::size_t>(i)], kSmallest, i);
  }
  bool right = true;
  std::thread other([&] {
    for (int i = 0; i < kBlocks; ++i) {
      void* block = blocks[static_cast<std::size_t>(i)];
      right = right && holds(block, kSmallest, i);
      std::free(block);
    }
  });
  for (int i = 0; i < kBlocks; ++i) {
    void* block = std::malloc(kSmallest + 4096 * static_cast<std::size_t>(i % 7));
    fill(block, kSmallest, i);
    CHECK(holds(block, kSmallest, i));
    std::free(block);
  }
  other.join();
  CHECK(right);
}

// A child without exec works on its own copy, and what it frees is not taken from the parent.
void forked() {
  void* block = std::malloc(kLarge);
  void* freed_by_child = std::malloc(kLarge);
  fill(block, kLarge, 1);
  fill(freed_by_child, kLarge, 2);
  const pid_t child = fork();
  if (child == 0) {
    bool right = holds(block, kLarge, 1) && holds(freed_by_child, kLarge, 2);
    fill(block, kLarge, 9);
    std::free(freed_by_child);
    void* own = std::malloc(kLarge);
    fill(own, kLarge, 4);
    block = std::realloc(block, 2 * kLarge);
    right = right && holds(block, kLarge, 9) && holds(own, kLarge, 4) && !is_shared(own);
    std::free(own);
    std::free(block);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(holds(block, kLarge, 1));
  CHECK(holds(freed_by_child, kLarge, 2));
  std::free(freed_by_child);
  CHECK(std::system("exit 3") / 256 == 3);
  const pid_t program = fork();
  if (program == 0) {
    execlp("sh", "sh", "-c", "exit 4", nullptr);
    _exit(1);
  }
  CHECK(waitpid(program, &status, 0) == program && WEXITSTATUS(status) == 4);
  CHECK(holds(block, kLarge, 1));
  std::free(block);
}

// More than the machine has, and more than half of what is free: pages come with the first touch.
void huge() {
  volatile std::size_t bytes = std::size_t{1} << 60;
  CHECK(std::malloc(bytes) == nullptr);
  const std::size_t machine = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * 4096;
  void* sparse = std::malloc(machine / 4 * 3);
  if (sparse != nullptr) {
    CHECK(!is_shared(sparse));
    bytes_of(sparse)[0] = 1;
  }
  std::free(sparse);
}

// Allocation in a loop gives memory back.
void many() {
  for (int i = 0; i < 3000; ++i) {
    void* block = std::malloc(kSmallest + static_cast<std::size_t>(i) * 1024);
    bytes_of(block)[kSmallest - 1] = 1;
    std::free(block);
  }
}

void exchange() {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  constexpr int kCount = 100000;
  std::vector<int> out(static_cast<std::size_t>(size * kCount));
  std::vector<int> in(out.size());
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (int i = 0; i < size * kCount; ++i) {
      out[static_cast<std::size_t>(i)] = iteration * 1000003 + rank * 7919 + i;
    }
    MPI_Alltoall(out.data(), kCount, MPI_INT, in.data(), kCount, MPI_INT, MPI_COMM_WORLD);
    bool right = true;
    for (int from = 0; from < size; ++from) {
      for (int i = 0; i < kCount; ++i) {
        right = right && in[static_cast<std::size_t>(from * kCount + i)] ==
                             iteration * 1000003 + from * 7919 + rank * kCount + i;
      }
    }
    CHECK(right);
  }
}

} // namespace

int main(int argc, char** argv) {
  alarm(80);
  expected = argc < 2 || std::strcmp(argv[1], "off") != 0;
  void* early = std::malloc(kLarge); // before MPI_Init
  fill(early, kLarge, 8);
  CHECK(is_shared(early) == expected);
  MPI_Init(&argc, &argv);
  for (int round = 0; round < 2; ++round) {
    border();
    zeroed();
    resized();
    aligned();
    threads();
    forked();
    huge();
    many();
    exchange();
  }
  CHECK(holds(early, kLarge, 8));
  MPI_Finalize();
  std::free(early);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
