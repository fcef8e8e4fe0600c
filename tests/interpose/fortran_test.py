# SPDX-License-Identifier: MIT
"""Programs of mpif.h, use mpi and use mpi_f08, built as users build them, on 1 to 4 ranks. They end
with an error when an element is wrong; FERRY_VERBOSE shows that Ferry carried them.
Arguments: mpiexec, ferry-run, the sources."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MPIEXEC, FERRY_RUN, *SOURCES = sys.argv[1:]
# For each program a function that it calls often, and that must have been taken.
TAKEN = {"fixed": "MPI_Alltoall_init 1 taken, 5 started", "module": "MPI_Ibcast 4 taken",
         "module08": "MPI_Iallgather 5 taken"}


def main():
    compiler = shutil.which("mpifort.mpich")
    if compiler is None or shutil.which("gfortran") is None:
        print("skipped: there is no mpifort.mpich with gfortran")
        return SKIPPED
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in map(pathlib.Path, SOURCES):
            program = os.path.join(folder, source.stem)
            subprocess.run([compiler, "-w", "-O2", source, "-o", program], check=True)
            for ranks in (1, 2, 3, 4):
                done = subprocess.run(
                    [MPIEXEC, "-genv", "FERRY_VERBOSE", "1", "-n", str(ranks), FERRY_RUN, program],
                    text=True, capture_output=True, timeout=60)
                taken = re.search(re.escape(TAKEN[source.stem]) + r"\b", done.stderr) is not None
                if done.returncode == 0 and taken:
                    continue
                faults += 1
                print(f"{source.name}, {ranks} ranks: exit {done.returncode}, "
                      f"{'' if taken else 'not '}taken\n{done.stdout}{done.stderr}")
    print(f"{faults} faults in {len(SOURCES)} programs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
