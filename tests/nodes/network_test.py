# SPDX-License-Identifier: MIT
"""Ranks in network, pid, mount and ipc namespaces, so that nodes share a wire and nothing else. Data is
right on every rank, Ferry forms the nodes that there are, and bytes go over the wire.
Arguments: MPIEXEC WORKER.

MPICH 4.0.2 may hang in MPI_Finalize here (pmodels/mpich#6596). Every rank prints a line when its work is
done, before MPI_Finalize; what hangs after that is ended, and told apart from a hang before."""

import os
import re
import subprocess
import sys
import time

import network
from namespaces import NEW_MOUNTS, NEW_NETWORK, NEW_PIDS, enter

MPIEXEC = sys.argv[1]
WORKER = os.path.abspath(sys.argv[2])
SECONDS = 60


def run(nodes, each, environment):
    """Output until all ranks are done or time is up, and whether the launcher ended by itself."""
    ranks = len(nodes.names) * each
    path = f"{nodes.folder}/output"
    with open(path, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            nodes.command(each, WORKER, "once"), env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    end = time.monotonic() + SECONDS
    output = ""
    while time.monotonic() < end:
        with open(path, encoding="utf-8", errors="replace") as file:
            output = file.read()
        if process.poll() is not None or len(re.findall(r": right$", output, re.M)) == ranks:
            break
        time.sleep(0.1)
    return output, nodes.end(process)


def main():
    network.require()
    enter(NEW_MOUNTS | NEW_PIDS | NEW_NETWORK)
    failed = 0
    for count, each in ((2, 2), (3, 2), (3, 1)):
        nodes = network.Network(count, MPIEXEC)
        try:
            before = nodes.bytes_moved()
            output, ended = run(nodes, each, {"FERRY_VERBOSE": "1", "FERRY_TIMEOUT": "30"})
            moved = nodes.bytes_moved() - before
        finally:
            nodes.stop()
        right = sorted(map(int, re.findall(r"^rank (\d+): right$", output, re.M)))
        faults = []
        if right != list(range(count * each)):
            faults.append(f"data was right on ranks {right}")
        path = f"nodes: {count} nodes" if each > 1 else "mpi: rank 0 cannot map rank 1"
        if path not in output:
            faults.append(f"nobody says '{path}'")
        if moved < 1 << 20:
            faults.append(f"only {moved} bytes went over the wires")
        print(f"{'FAILED' if faults else 'ok'}: {count} nodes of {each}, {moved} bytes over the wires"
              + ("" if ended else "; MPI_Finalize of the MPI below hung"), flush=True)
        if faults:
            failed = 1
            print("\n".join(faults) + f"\n{output}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
