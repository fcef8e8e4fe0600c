// SPDX-License-Identifier: MIT
// ferry-run: starts a program of MPI with Ferry in front of the MPI below.
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <ferry/ferry.h>

namespace {

namespace fs = std::filesystem;

constexpr int kUsageError = 2;
constexpr int kCannotRun = 126; // as a shell says it
constexpr int kNotFound = 127;

constexpr const char* kMpiLibrary = "libferry-mpi.so.0";
constexpr const char* kHeapLibrary = "libferry-heap.so.0";

constexpr const char* kHelp =
    "Usage: ferry-run [--print] PROGRAM [ARGUMENT...]\n"
    "Runs a program that was built with MPICH; Ferry carries its collectives. Under the launcher:\n"
    "\n"
    "  mpiexec.mpich -n 8 ferry-run ./app\n"
    "\n"
    "  --print    the value of LD_PRELOAD instead, for launchers that set the environment\n"
    "  --version  the version of Ferry\n"
    "  --help     this text\n"
    "\n"
    "FERRY_VERBOSE=1 tells at the end what Ferry took, FERRY=off hands all to MPICH,\n"
    "FERRY_SHARE_HEAP=1 lets ranks map each other's large allocations. ferry-info --env has the "
    "rest.\n";

int fail(int code, const std::string& text) {
  std::fprintf(stderr, "ferry-run: %s\n", text.c_str());
  return code;
}

// Where the libraries may be, seen from this program: beside it, in the folder they are built in,
// and in the folder they are installed in.
std::vector<fs::path> folders() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {here, here / "../lib/interpose", here / ".." / FERRY_LIBDIR};
}

std::string find_library(const char* name) {
  for (const fs::path& folder : folders()) {
    std::error_code error;
    const fs::path found = fs::canonical(folder / name, error);
    // Under the name that was asked for, so that the linker knows it for the same library.
    if (!error) return (fs::canonical(folder) / name).string();
  }
  return {};
}

std::string not_found(const char* name) {
  std::string places;
  for (const fs::path& folder : folders()) places += "\n  " + folder.lexically_normal().string();
  return std::string("there is no ") + name + " in" + places + "\ninstall Ferry anew";
}

// What FERRY_SHARE_HEAP says: 0, 1, or -1 for what is not allowed.
int share_heap() {
  const char* value = std::getenv("FERRY_SHARE_HEAP");
  if (value == nullptr || std::strcmp(value, "0") == 0) return 0;
  return std::strcmp(value, "1") == 0 ? 1 : -1;
}

// Behind what the user preloads, so that a tool sees the calls of the program first.
std::string preload_with(const std::vector<std::string>& libraries) {
  const char* before = std::getenv("LD_PRELOAD");
  std::string value = before != nullptr ? before : "";
  for (const std::string& library : libraries) {
    if (value.find(library) != std::string::npos) continue;
    if (!value.empty()) value += ':';
    value += library;
  }
  return value;
}

int run(char** command, bool print) {
  std::vector<const char*> names{kMpiLibrary};
  const int share = share_heap();
  if (share < 0) return fail(kUsageError, "FERRY_SHARE_HEAP is neither 0 nor 1");
  if (share == 1) names.push_back(kHeapLibrary);
  std::vector<std::string> libraries;
  for (const char* name : names) {
    libraries.push_back(find_library(name));
    if (libraries.back().empty()) return fail(kNotFound, not_found(name));
    if (libraries.back().find_first_of(": ") != std::string::npos) {
      return fail(
          kNotFound, "LD_PRELOAD cannot hold " + libraries.back() +
                         ", which has a blank or a colon; install Ferry elsewhere");
    }
  }
  const std::string value = preload_with(libraries);
  if (print) return std::puts(value.c_str()) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
  if (setenv("LD_PRELOAD", value.c_str(), 1) != 0) return fail(kCannotRun, std::strerror(errno));
  execvp(command[0], command);
  const int error = errno;
  return fail(
      error == ENOENT ? kNotFound : kCannotRun,
      std::string("cannot run ") + command[0] + ": " + std::strerror(error));
}

} // namespace

int main(int argc, char** argv) {
  int at = 1;
  bool print = false;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string_view option = argv[at];
    if (option == "--help" || option == "-h") {
      return std::fputs(kHelp, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    if (option == "--version") {
      std::printf(
          "ferry-run %d.%d.%d\n", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR, FERRY_VERSION_PATCH);
      return EXIT_SUCCESS;
    }
    if (option == "--") {
      ++at;
      break;
    }
    if (option != "--print") {
      return fail(kUsageError, "unknown option " + std::string(option) + "; see ferry-run --help");
    }
    print = true;
  }
  if (at == argc && !print) return fail(kUsageError, "no program is given; see ferry-run --help");
  return run(argv + at, print);
}
