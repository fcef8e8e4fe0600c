# SPDX-License-Identifier: MIT
"""ferry-info --job: a line for each rank, and how the ranks reach each other.
Arguments: MPIEXEC FERRY_INFO."""

import os
import re
import subprocess
import sys

MPIEXEC, FERRY_INFO = sys.argv[1:]
failed = False
for ranks, nodes, path in ((3, "block:2", "nodes: 2 nodes"), (2, "", "slots: ")):
    done = subprocess.run(
        [MPIEXEC, "-n", str(ranks), FERRY_INFO, "--job"], text=True, capture_output=True, timeout=60,
        env={**os.environ, "FERRY_NODES": nodes} if nodes else None)
    lines = done.stdout.splitlines()
    right = done.returncode == 0 and len(lines) == ranks + 1 and lines[-1].split(None, 1)[1].startswith(path)
    for rank, line in enumerate(lines[:-1]):
        wanted = rf"rank {rank} +{re.escape(os.uname().nodename)}, process \d+, \d+ of \d+ cores, GPUs: "
        right = right and re.match(wanted, line) is not None
        if not os.path.exists("/proc/driver/nvidia") and not os.path.exists("/dev/kfd"):
            right = right and line.endswith("GPUs: none")
    if not right:
        failed = True
        print(f"{ranks} ranks: {done}")
sys.exit(failed)
