# SPDX-License-Identifier: MIT
"""Case 95: nothing stays in /dev/shm after SIGKILL at random moments from start to end."""

import os
import random
import time

from common import Job, check, private_shm, ranks

private_shm("512m")
moments = random.Random(95)
for attempt in range(20):
    job = Job(ranks(2, "loop", "0.5"), UCX_TLS="tcp,self", FERRY_SEGMENTS="shm")
    time.sleep(moments.uniform(0.1, 1.2))
    job.end()
    # The MPI below leaves files of its own.
    left = [name for name in os.listdir("/dev/shm") if not name.startswith("mpich_")]
    check(not left, f"attempt {attempt}: nothing in /dev/shm, found {left}", job)
