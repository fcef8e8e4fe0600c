# SPDX-License-Identifier: MIT
"""Case 58: 500 communicators in use while /dev/shm has room for a part of them. Those without room go
through the MPI below, as FERRY_VERBOSE tells; data right on every rank."""

from common import Job, check, private_shm, ranks

private_shm("16m")
job = Job(ranks(2, "communicators", "500"), UCX_TLS="tcp,self", FERRY_SEGMENTS="shm",
          FERRY_VERBOSE="1")
done = job.wait_for(r"^rank \d: right$", 2, 100)
# MPI_Finalize over tcp may hang in the MPI below: what counts is what came before.
job.wait(5)
output = job.output()
check(len(done) == 2, "data right on every rank", job)
check("alltoall: slots" in output, "the first communicators have room", job)
check("no space in /dev/shm" in output, "the last ones have none", job)
