# SPDX-License-Identifier: MIT
"""libferry.so exports every function that ferry.h declares, and nothing that is not ferry_*.
Arguments: the header, the library; the C compiler for the self-test."""

import os
import re
import subprocess
import sys
import tempfile

import common

DECLARED = re.compile(r"^FERRY_API\b[^;(]*?\b(\w+)\s*\(", re.MULTILINE)


def check_library(header, library):
    with open(header, encoding="utf-8") as file:
        declared = set(DECLARED.findall(common.code_only(file.read())))
    table = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in table.splitlines()}
    faults = [f"{name}: exported, but not ferry_*"
              for name in sorted(exported) if not name.startswith("ferry_")]
    faults += [f"{name}: declared in the header, not exported" for name in sorted(declared - exported)]
    return faults


def self_test(compiler):
    """A library with one symbol too many and one too few has exactly these two faults."""
    with tempfile.TemporaryDirectory() as folder:
        header, library = os.path.join(folder, "a.h"), os.path.join(folder, "liba.so")
        common.write_tree(folder, {
            "a.h": "FERRY_API int ferry_here(int a);\nFERRY_API const char* ferry_gone(void);\n",
            "a.c": "int ferry_here(int a) { return a; }\nint stray(void) { return 1; }\n",
        })
        subprocess.run(
            [*compiler, "-shared", "-fPIC", "-o", library, os.path.join(folder, "a.c")], check=True)
        faults = check_library(header, library)
    if [fault.split(":")[0] for fault in faults] != ["stray", "ferry_gone"]:
        sys.exit(f"self-test: planted stray and ferry_gone, found {faults}")


if __name__ == "__main__":
    self_test(sys.argv[3:])
    found = check_library(sys.argv[1], sys.argv[2])
    print("\n".join(found) or "only ferry_*, and all of ferry.h")
    sys.exit(1 if found else 0)
