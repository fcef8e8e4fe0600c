#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ferry-info --decode: packets of a ring by name and field, what is wrong with its offset and code 1."""

import struct
import subprocess
import sys

COPY = [0x1, 63, 0, 0x1000, 0, 0x2000, 0]  # COPY_LINEAR of 64 bytes
ADD = [10 | 47 << 25, 0x3000, 0, 1, 0, 0, 0, 0]  # ATOMIC add of 64 bits
SWAP = [1 | 9 << 8, 63, 0, 0x1000, 0, 0x2000, 0]
failures = 0


def decode(data, code, *lines, generation="software"):
    """Runs the program on a dump and compares exit code and lines."""
    global failures
    run = subprocess.run(
        [sys.argv[1], "--decode", "-", "--generation", generation],
        input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    text = run.stdout.decode() + run.stderr.decode()
    missing = [line for line in lines if line not in text]
    if run.returncode != code or missing:
        failures += 1
        print(f"code {run.returncode} for {code}, lacks {missing}:\n{text}")


def binary(dwords):
    return struct.pack(f"<{len(dwords)}I", *dwords)


copy_line = "0x00000000 COPY_LINEAR bytes=64 source=0x1000 destination=0x2000"
decode(binary(COPY + ADD), 0, copy_line, "0x0000001c ATOMIC operation=add_64 word=0x3000 value=0x1")
decode(" ".join(f"{dword:08x}" for dword in COPY).encode(), 0, copy_line)
decode(binary(COPY + ADD[:3]), 1, copy_line, "0x0000001c ATOMIC is cut off: 3 of 8 dwords")
decode(binary(COPY + [0xff]), 1, copy_line, "0x0000001c unknown packet 0x000000ff")
decode(binary(SWAP), 0, "COPY_SWAP", generation="gfx942")
decode(binary(SWAP), 1, "unknown packet", generation="gfx90a")
decode(b"", 2, "unknown generation 'nope'", generation="nope")
print(f"doctest-counts: {7 - failures} passed, {failures} failed")
sys.exit(1 if failures else 0)
