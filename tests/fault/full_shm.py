# SPDX-License-Identifier: MIT
"""Cases 97, 98: /dev/shm of a size given as third argument. A message or a slower path with right
data, never a signal. The MPI below is kept off /dev/shm, so that only Ferry meets the limit."""

import sys

from common import Job, check, private_shm, ranks

size = sys.argv[3]
private_shm(size)
job = Job(ranks(2, "once"), UCX_TLS="tcp,self", FERRY_SEGMENTS="shm")
done = job.wait_for(r"^rank \d: (right|error of class .*)$", 2, 50)
# MPI_Finalize over tcp may hang in the MPI below: what counts is what came before.
job.wait(5)
output = job.output()
check("signal 7" not in output and "Bus error" not in output, "no SIGBUS", job)
check(len(done) == 2, "every rank ends with right data or an error", job)
check("wrong data" not in output, "no wrong data", job)
too_small = size.endswith("k") or size in ("1m", "4m")
told = [line for line in output.splitlines() if "/dev/shm" in line]
check(told or not too_small, "the message names /dev/shm", job)
print(*(match.group(0) for match in done), *told[:2], sep="\n")
