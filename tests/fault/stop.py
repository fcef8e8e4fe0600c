# SPDX-License-Identifier: MIT
"""Case 115: a stopped rank is not a dead one. The run goes on when it is continued, its data right,
and the wait was reported with the collective and the rank waited for."""

import os
import re
import signal
import time

from common import Job, check, ranks

STOPPED = 1

job = Job(ranks(3, "loop", "6"), FERRY_WARN_AFTER="1")
pids = job.pids(3)
check(len(pids) == 3, "three ranks start", job)
time.sleep(0.5)
os.kill(pids[STOPPED], signal.SIGSTOP)
time.sleep(3)
os.kill(pids[STOPPED], signal.SIGCONT)
check(job.wait(40) == 0, "the run ends well", job)
check(len(job.wait_for(r"^rank \d: right$", 3, 1)) == 3, "data right on every rank", job)
warnings = [
    line
    for line in job.output().splitlines()
    if re.search(r"alltoall|bcast|broadcast", line) and f"rank {STOPPED}" in line
]
check(warnings, "a warning names collective and rank waited for", job)
print(warnings[0])
check(
    re.search(rf"ferry:   rank {STOPPED} began last: call \d+ \w+ of \d+ bytes", job.output()),
    "what the stopped rank began last is told", job)
check(
    re.search(r"ferry:   rank \d, this one, began last: call \d+ .*call \d+ ", job.output()),
    "and what this one did", job)
