# SPDX-License-Identifier: MIT
"""Every C and C++ file is as the pinned clang-format leaves it; without that version: skipped."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import common

PINNED = "14"


def find_formatter():
    """The command of the pinned version, or None."""
    for name in (f"clang-format-{PINNED}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {PINNED}\.", text):
            return path
    return None


def make_check(formatter, style):
    def check(root):
        paths = common.files(root)
        done = subprocess.run(
            [formatter, f"--style=file:{style}", "--dry-run", "-Werror", *paths], cwd=root,
            capture_output=True, text=True)
        found = re.findall(r"^([^:\n]+):(\d+):\d+: error: ", done.stderr, re.MULTILINE)
        if done.returncode and not found:
            return [f"clang-format: {done.stderr}"]
        first = {path: line for path, line in reversed(found)}
        return [f"{path}:{first[path]}: clang-format would change this" for path in sorted(first)]

    return check


PLANTS = [
    ({"lib/a.cpp": "int a() {\n  return 1;\n}\n", "lib/b.hpp": "#pragma once\nint  b;\n"},
     ["lib/b.hpp:2"]),
    ({"lib/a.cpp": "int* a;\n"}, []),
    ({"lib/a.cpp": "int a;\nint *b;\n"}, ["lib/a.cpp:2"]),
]

if __name__ == "__main__":
    command = find_formatter()
    if command is None:
        print(f"skipped: there is no clang-format {PINNED}")
        sys.exit(common.SKIPPED)
    style_file = pathlib.Path(os.path.abspath(sys.argv[1])) / ".clang-format"
    common.run(make_check(command, style_file), PLANTS)
