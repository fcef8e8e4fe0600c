# SPDX-License-Identifier: MIT
"""Case 68: ranks with different sets of cores agree on everything they compute apart."""

import os
import sys

from common import MPIEXEC, SKIP, WORKER, Job, check

cores = sorted(os.sched_getaffinity(0))
if len(cores) < 2:
    print("skipped: one core only")
    sys.exit(SKIP)
command = [MPIEXEC]
for part in (cores[:1], cores[:2], cores[1:2]):
    command += [":"] if len(command) > 1 else []
    command += ["-n", "1", "taskset", "-c", ",".join(map(str, part)), WORKER, "once"]
job = Job(command)
check(job.wait(60) == 0, "the run ends well", job)
check(len(job.wait_for(r"^rank \d: right$", 3, 1)) == 3, "data right on every rank", job)
