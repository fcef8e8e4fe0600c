# SPDX-License-Identifier: MIT
"""Case 110: a process that its launcher believes to be one of four but MPI says is alone is told so."""

from common import WORKER, Job, check

for name in ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"):
    job = Job([WORKER, "once"], **{name: "4"})
    check(job.wait(30) == 0, f"{name}: a single rank works", job)
    told = [line for line in job.output().splitlines() if name in line]
    check(told, f"{name}: a warning names the variable", job)
    print(told[0])
