# SPDX-License-Identifier: MIT
"""Case 111: one rank is killed in a loop of collectives; the others return an error that names it."""

import os
import signal
import time

from common import Job, check, ranks

SECONDS = 10

for dead in (1, 0):
    job = Job(ranks(3, "loop", "30", options=["-disable-auto-cleanup"]))
    pids = job.pids(3)
    check(len(pids) == 3, "three ranks start", job)
    time.sleep(0.5)
    os.kill(pids[dead], signal.SIGKILL)
    begin = time.monotonic()
    others = [rank for rank in range(3) if rank != dead]
    pattern = rf"^rank ({'|'.join(map(str, others))}): error of class \d+: .*$"
    found = job.wait_for(pattern, len(others), SECONDS)
    passed = time.monotonic() - begin
    check(len(found) == len(others), f"rank {dead} dead: an error on every other rank", job)
    for match in found:
        text = match.group(0).split(": ", 2)[2]
        check(f"rank {dead}" in text.split(" of 3", 1)[-1], f"error names rank {dead}: {text}", job)
    print(f"rank {dead} killed: errors on {others} after {passed:.1f} s")
    job.end()
