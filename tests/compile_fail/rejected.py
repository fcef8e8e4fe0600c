#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles rejected.cpp once per CASE_*, which must fail for the stated reason, and once without.

usage: rejected.py COMPILER... -- FLAG...    (g++; its words are what "says:" quotes)
"""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("rejected.cpp")
EXPECTED_CASES = 20


def compile_source(command, *defines):
    env = dict(os.environ, LC_ALL="C")
    fixed = ["-std=c++20", "-Werror=unused-result", "-fsyntax-only"]
    done = subprocess.run(
        [*command, *fixed, *defines, str(SOURCE)], capture_output=True, text=True, env=env,
        timeout=120, check=False)
    return done.returncode, done.stderr


def main():
    split = sys.argv.index("--")
    command = sys.argv[1:split] + sys.argv[split + 1:]
    failures = []
    code, errors = compile_source(command)
    if code != 0:
        failures.append(f"the file without any case does not compile:\n{errors}")
    cases = re.findall(r"^#ifdef (CASE_\w+) // says: (.+)$", SOURCE.read_text(), re.MULTILINE)
    if len(cases) != EXPECTED_CASES:
        failures.append(f"found {len(cases)} cases, expected {EXPECTED_CASES}")
    for name, says in cases:
        code, errors = compile_source(command, f"-D{name}")
        if code == 0:
            failures.append(f"{name} compiles")
        elif says not in errors:
            failures.append(f"{name} is rejected, but not with '{says}':\n{errors}")
    print("\n".join(failures) or f"{len(cases)} cases rejected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
