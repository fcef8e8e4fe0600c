# SPDX-License-Identifier: MIT
"""ferry-info --selftest with the module for AMD GPUs, and with one on modelled GPUs. Arguments:
ferry-info, the folders of both modules."""

import os
import re
import subprocess
import sys

program, real, modelled = sys.argv[1:]
faults = []


def run(folder):
    done = subprocess.run([program, "--selftest"], env=os.environ | {"FERRY_MODULE_PATH": folder},
                          capture_output=True, text=True, timeout=100)
    print(done.stdout, done.stderr)
    return done


def expect(done, code, patterns):
    if done.returncode != code:
        faults.append(f"exit code {done.returncode} in place of {code}")
    for pattern in patterns:
        if not re.search(pattern, done.stdout, re.MULTILINE):
            faults.append(f"no line '{pattern}'")


if not os.path.exists("/dev/kfd"):
    expect(run(real), 0, [r"^skip no AMD device: \S+", r"^0 passed, 0 failed, 2 skipped$"])
expect(run(modelled), 0, [
    r"^info GPU 0000:75:00\.0 \(node 2, gfx942\): 2 \+ 14 SDMA engines", r"^pass topology: 8 GPUs", r"^pass driver: interface 1\.17$",
    r"^pass kfd copy of 0000:75:00\.0 to 0000:65:00\.0, engine 12: \d+ us .*, [\d.]+ GB/s",
    r"^(pass hsa copy of |skip hsa copy of .*: no time is left)", r"^skip handles between processes: ", r" passed, 0 failed, "])
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
