#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ferry-plan: steps, verification and times of plans without a job, and what it says to bad questions."""

import subprocess
import sys

passed = failed = 0


def ask(arguments, code, *lines):
    """Runs the program and compares exit code and lines."""
    global passed, failed
    run = subprocess.run(
        [sys.argv[1]] + arguments.split(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    text = run.stdout.decode() + run.stderr.decode()
    missing = [line for line in lines if line not in text]
    if run.returncode == code and not missing:
        passed += 1
        return
    failed += 1
    print(f"{arguments}: code {run.returncode} for {code}, lacks {missing}:\n{text}")


ask("alltoall -n 3 --rank 1", 0,
    "alltoall rank 1 of 3, path slots", "copy   8 bytes send@1[2]+0 -> slot@1+16", "signal slot to rank 2")
ask("bcast --bytes 100K --memory private --root 2 --rank 2", 0, "rank 2 of 4, path engine", "signal filled to rank 1")
ask("alltoall -n 16 --bytes 1M --verify", 0, "16 ranks, ", "nothing is wrong")
ask("allgather -n 5 --bytes 1M --memory private --in-place --verify", 0, "nothing is wrong")
# The root stores 8 bytes and a flag, which is seen later and read.
ask("bcast -n 3 --bytes 8 --simulate --costs 1000,1,10000,100000,100", 0,
    "3 ranks take 112.116 us, rank 1 leaves last")
ask("alltoall -n 20000 --simulate --costs 1,1,1,1,1", 0,
    "simulated rank 0, whose plan is everybody's", "20000 ranks take ")
ask("alltoall --simulate", 0, "costs in ns (measured here)", "4 ranks take ")
ask("--help", 0, "Usage: ferry-plan", "--simulate")
ask("reduce", 2, "ferry-plan: the collective is one of")
ask("alltoall --bytes 3x", 2, "'3x' is no size")
ask("alltoall --rank 4", 2, "--rank 4 is not from 0 to 3")
ask("alltoall -n 0", 2, "--ranks 0 is not from 1")
ask("bcast --in-place", 2, "--in-place goes with alltoall and allgather only")
ask("alltoall --costs 1,2,3,4,5", 2, "--engines and --costs go with --simulate only")
ask("alltoall --simulate --costs 1,2,3,4", 2, "--costs takes five numbers")
ask("alltoall --simulate --verify", 2, "exclude each other")
ask("alltoall --memory device", 2, "--memory is shared or private")
print(f"doctest-counts: {passed} passed, {failed} failed")
sys.exit(failed > 0)
