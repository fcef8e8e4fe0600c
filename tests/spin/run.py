# SPDX-License-Identifier: MIT
"""Model checks of Ferry's protocols with Spin. Each model holds without faults, and each planted
fault (a switch in the model, named after a row of doc/sdma-checklist.md or a case of the field) is
found, for the reason that it was planted for. With --full the ring of 3 producers x 2 packets is
exhausted as well (3 GB, minutes). Skips (77) where spin or gcc is missing."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
LIMIT_SECONDS = 600  # of one run; seconds unless the machine has much else to do

# Model, what it shows, definitions, bits. Without bits every state that can be reached is visited;
# with bits a part of them is, in the order of 2^bits / 3, kept as bits by their hash.
HOLDS = [
    ("ring", "2 producers x 4 packets, cell by cell", "-DPRODUCERS=2 -DFINE", None),
    ("ring", "3 producers x 4 packets", "", 24),
    ("ring", "a producer stops with its reservation", "-DPACKETS=2 -DSTOP=1 -DSTOP_IN=0", None),
    ("ring", "a producer stops before its stamp", "-DPACKETS=2 -DSTOP=2 -DSTOP_IN=0", None),
    ("ring", "a producer stops as publisher", "-DPRODUCERS=2 -DSTOP=3", None),
    ("ring", "a producer stops between wptr and doorbell", "-DPRODUCERS=2 -DSTOP=4", None),
    ("handshake", "2 ranks, 6 starts", "-DEPOCHS=6", None),
    ("handshake", "3 ranks, 2 starts", "-DRANKS=3 -DEPOCHS=2", None),
    ("slots", "3 ranks, 4 calls, slots twice deep", "-DCALLS=4", None),
    ("slots", "2 ranks, 7 calls, slots 4 deep", "-DRANKS=2 -DCALLS=7 -DDEPTH=4", None),
    ("boards", "3 ranks, 4 calls", "-DCALLS=4", None),
]
FULL = [("ring", "3 producers x 2 packets", "-DPACKETS=2", None)]

STUCK = "invalid end state"
UNREAD = r"unread\[.*==0"
# Model, switch, where it is from, definitions, what must be reported.
FAULTS = [
    ("ring", "STRADDLE", "row 15", "", r"position%5\)!=\(5-1"),
    ("ring", "STAMP_FIRST", "row 18", "", r"cell\[.*!=0"),
    ("ring", "PUBLISH_OWN", "row 20", "", r"cell\[.*!=0|end>(wptr|doorbell)"),
    ("ring", "PAST_DOORBELL", "row 21", "", r"position<=doorbell"),
    ("ring", "SKIP_TOO_FAR", "row 4", "", r"position<=doorbell|part=="),
    ("ring", "PADDING", "row 23", "-DPRODUCERS=2", r"end<\(rptr\+5"),
    ("ring", "TWO_PUBLISHERS", "row 25", "", r"cell\[.*!=0|end>(wptr|doorbell)"),
    ("ring", "LEAVES_EARLY", "case 71", "", r"finished==3"),
    ("ring", "RPTR_EARLY", "case 84", "", r"cell\[.*==0"),
    ("handshake", "NO_READY", "row 43", "", r"open\[to\]==epoch"),
    ("handshake", "SIGNAL_FIRST", "row 30", "", r"recv\[.*==epoch|open\[to\]==epoch"),
    ("handshake", "OTHER_SLOT", "row 32", "", STUCK + r"|open\[to\]==epoch"),
    ("handshake", "FROZEN", "row 41", "", r"open\[to\]==epoch"),
    ("handshake", "RESET", "row 42", "", STUCK),
    ("handshake", "DOORBELL_FIRST", "row 18", "", r"open\[to\]==epoch"),
    ("handshake", "NO_MOVED", "row 45", "", r"recv\[.*==epoch"),
    ("slots", "NO_CREDITS", "case 78", "-DCALLS=4", UNREAD),
    ("slots", "DEPTH", "case 86", "-DCALLS=4", UNREAD),
    ("slots", "SELDOM", "row 33", "-DCALLS=4", STUCK),
    ("slots", "EQUAL", "row 46", "-DCALLS=4", STUCK),
    ("slots", "NARROW", "case 72", "-DCALLS=5 -DRANKS=2", STUCK + r"|data\[.*==|" + UNREAD),
    ("slots", "CREDIT", "case 84", "-DCALLS=4", UNREAD),
    ("slots", "HEADER_FIRST", "case 79", "-DCALLS=4", r"data\[.*==|" + UNREAD),
    ("slots", "DONE_EARLY", "row 33", "-DCALLS=4", UNREAD),
    ("boards", "NOT_FREE", "row 23", "-DCALLS=4", UNREAD),
    ("boards", "CREDIT", "case 84", "-DCALLS=4", UNREAD),
    ("boards", "HEADER_FIRST", "case 79", "-DCALLS=4", r"offer\[.*==call|" + UNREAD),
    ("boards", "NO_GATHER", "row 34", "-DCALLS=4", r"open\[i\]==call"),
    ("boards", "DONE_EARLY", "row 33", "-DCALLS=4", UNREAD),
]


def check(model, definitions, bits, optimise):
    """What Spin's checker says about a model."""
    space = ["-DBITSTATE"] if bits else ["-DCOLLAPSE", "-DMEMLIM=8000"]
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copy(HERE / f"{model}.pml", folder)
        subprocess.run(["spin", *definitions.split(), "-a", source], cwd=folder, check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        subprocess.run(["gcc", optimise, "-w", "-DSAFETY", *space, "-o", "pan", "pan.c"],
                       cwd=folder, check=True)
        return subprocess.run(["./pan", "-m100000", f"-w{bits or 22}"], cwd=folder, text=True,
                              capture_output=True, timeout=LIMIT_SECONDS).stdout


def figure(pattern, said):
    found = re.search(pattern, said)
    return found.group(1) if found else "?"


def holds(job):
    """(passed, line): the model has no error, and was not left half explored."""
    model, shows, definitions, bits = job
    began = time.monotonic()
    said = check(model, definitions, bits, "-O2")
    cut = re.search(r"max search depth|out of memory|reached -DMEMLIM|aborted", said)
    complete = "errors: 0" in said and cut is None
    states = figure(r"([\d.e+]+) states, stored", said)
    how = "bitstate" if bits else "exhaustive"
    line = (f"{model}: {shows}: {states} states, {how}, depth "
            f"{figure(r'depth reached ([0-9]+)', said)}, {time.monotonic() - began:.1f} s")
    return complete, line if complete else f"{line}\n{said}"


def finds(job):
    """(passed, line): the planted fault was found, and is the one that was planted."""
    model, switch, origin, definitions, expected = job
    said = check(model, f"{definitions} -DFAULT_{switch}", None, "-O0")
    error = re.search(r"^pan:1: (.*) \(at depth (\d+)\)", said, re.MULTILINE)
    name = f"{model}: fault {switch} ({origin})"
    if error is None:
        return False, f"{name} was not found"
    if not re.search(expected, error.group(1)):
        return False, f"{name}: found {error.group(1)}, expected {expected}"
    return True, f"{name}: found at step {error.group(2)}: {error.group(1)}"


def unused_switches():
    """Switches of the models that no fault of the list plants."""
    planted = {(model, switch) for model, switch, *_ in FAULTS}
    for path in sorted(HERE.glob("*.pml")):
        for switch in set(re.findall(r"FAULT_(\w+)", path.read_text(encoding="utf-8"))):
            if (path.stem, switch) not in planted:
                yield f"{path.name}: FAULT_{switch} is planted by nobody"


def main():
    missing = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found; scripts/install-deps installs them")
        return SKIPPED
    jobs = [(holds, job) for job in HOLDS + (FULL if "--full" in sys.argv else [])]
    jobs += [(finds, job) for job in FAULTS]
    results = [(False, line) for line in unused_switches()]
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for result in pool.map(lambda job: job[0](job[1]), jobs):
            print(("ok    " if result[0] else "WRONG ") + result[1], flush=True)
            results.append(result)
    for passed, line in results[:len(results) - len(jobs)]:
        print("WRONG " + line)
    failed = sum(not passed for passed, _ in results)
    print(f"doctest-counts: {len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
