# SPDX-License-Identifier: MIT
"""Case 111: one rank is killed in a loop of collectives; the others return an error that names it.

Hydra ends the ranks that are left, even with -disable-auto-cleanup, by signals to the process group
that it made for each. So each rank runs in a session of its own, as under launchers that do nothing,
and writes to a file, since its pipe ends with Hydra."""

import os
import re
import signal
import sys
import tempfile
import time

from common import MPIEXEC, WORKER, Job, check

RANKS = 3
SECONDS = 10
SCRIPT = 'setsid "$@" > "$OUTPUT.$PMI_RANK" 2>&1'


def read(output, rank):
    try:
        with open(f"{output}.{rank}") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def await_line(output, rank, pattern, seconds):
    end = time.monotonic() + seconds
    found = None
    while found is None and time.monotonic() < end:
        found = re.search(pattern, read(output, rank), re.MULTILINE)
        time.sleep(0.02)
    return found


def try_with(dead, output):
    command = [MPIEXEC, "-n", str(RANKS), "sh", "-c", SCRIPT, "sh", WORKER, "loop", "30"]
    job = Job(command, OUTPUT=output)
    started = [await_line(output, rank, r": pid (\d+)$", 30) for rank in range(RANKS)]
    pids = [int(match.group(1)) for match in started if match is not None]
    failed = []
    try:
        check(len(pids) == RANKS, "three ranks start", job)
        time.sleep(0.5)
        os.kill(pids[dead], signal.SIGKILL)
        begin = time.monotonic()
        for rank in range(RANKS):
            if rank == dead:
                continue
            found = await_line(output, rank, r"error of class \d+: .*$", SECONDS)
            if found is None or f"rank {dead} " not in found.group(0).split(f" of {RANKS}", 1)[-1]:
                failed.append(rank)
            print(f"rank {dead} killed, rank {rank}: {read(output, rank).splitlines()[1:]}")
        print(f"after {time.monotonic() - begin:.1f} s")
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.end()
    return failed


for dead in (1, 0):
    with tempfile.TemporaryDirectory() as folder:
        failed = try_with(dead, os.path.join(folder, "rank"))
    if failed:
        print(f"FAILED: no error that names rank {dead} on ranks {failed}")
        sys.exit(1)
