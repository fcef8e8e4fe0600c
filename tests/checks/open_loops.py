# SPDX-License-Identifier: MIT
"""Loops without a bound are the wait helper's alone: lib/base/wait.*."""

import re

import common

OPEN = re.compile(r"while ?\((true|1)\)|while ?\(!|for ?\(;;\)")


def check(root):
    faults = []
    for path in common.files(root, ("device", "lib")):
        if path.startswith("lib/base/wait."):
            continue
        for number, line in enumerate(common.lines_of(root, path), 1):
            if OPEN.search(line):
                faults.append(f"{path}:{number}: {line.strip()}")
    return faults


PLANTS = [
    ({"lib/base/wait.cpp": "while (true) {}\n", "lib/a.cpp": "while (x < 3) ++x;\n"}, []),
    ({"device/a.hpp": "\nwhile (!done) {}\n"}, ["device/a.hpp:2"]),
    ({"lib/exec/a.cpp": "for (;;) {}\nwhile(1) {}\nwhile (true) {}\n"},
     ["lib/exec/a.cpp:1", "lib/exec/a.cpp:2", "lib/exec/a.cpp:3"]),
]

if __name__ == "__main__":
    common.run(check, PLANTS)
