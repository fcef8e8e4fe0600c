# SPDX-License-Identifier: MIT
"""Every header compiles alone, and without a warning; ferry.h is C11 as well.
Arguments: the source root, the C compiler, --, the C++ compiler."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

import common

FOLDERS = ("include", "device", "lib", "collectives")
PACKAGES = ("mpich", "fmt", "hwloc")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
C_HEADERS = (".h",)


def package_flags():
    found = subprocess.run(
        ["pkg-config", "--cflags", *PACKAGES], check=True, capture_output=True, text=True)
    return found.stdout.split()


def compile_alone(root, path, command):
    """A fault, or None. The header is included, since as a main file it may not say pragma once."""
    done = subprocess.run(
        [*command, *WARNINGS, "-fsyntax-only", "-I.", "-Iinclude", "-"], cwd=root, text=True,
        input=f'#include "{path}"\n', stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    language = command[command.index("-x") + 1]
    return f"{path}:1: not alone as {language}:\n{done.stdout}" if done.returncode else None


def make_check(c_compiler, cpp_compiler):
    flags = package_flags()
    as_c = [*c_compiler, "-x", "c", "-std=c11", *flags]
    as_cpp = [*cpp_compiler, "-x", "c++", "-std=c++20", *flags]

    def check(root):
        headers = common.files(root, FOLDERS, (".h", ".hpp"))
        jobs = [(path, as_cpp) for path in headers]
        jobs += [(path, as_c) for path in headers if pathlib.Path(path).suffix in C_HEADERS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [f for f in pool.map(lambda job: compile_alone(root, *job), jobs) if f]

    return check


PLANTS = [
    ({
        "include/a.h": "#pragma once\n#include <stddef.h>\nsize_t a(void);\n",
        "include/cpp_only.h": "#pragma once\nnamespace b {}\n",
        "lib/good.hpp": "#pragma once\n#include <vector>\ninline std::vector<int> c;\n",
        "lib/lacks.hpp": "#pragma once\ninline std::vector<int> d;\n",
        "device/warns.hpp": "#pragma once\ninline int e(long f) { return f; }\n",
    }, ["include/cpp_only.h:1", "lib/lacks.hpp:1", "device/warns.hpp:1"]),
]

if __name__ == "__main__":
    split = sys.argv.index("--")
    common.run(make_check(sys.argv[2:split], sys.argv[split + 1:]), PLANTS)
