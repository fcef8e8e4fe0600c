# SPDX-License-Identifier: MIT
"""Runs MPI jobs of ferry-bench and merges what they measured."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess

TUNED = {"UCX_RNDV_THRESH": "65536"}  # what makes MPICH quickest between 8 and 32 KiB
PEERS = ("mpi", "tuned", "openmpi")
LIMIT = 300  # seconds for one job; a peer that hangs must not hang the run


class JobError(Exception):
    """What is missing or went wrong, in one sentence."""


def find_program(name):
    """Beside this program when it is installed, in a build folder, or on the path."""
    here = pathlib.Path(__file__).resolve()
    root = here.parents[2]
    folders = [here.parents[3] / "bin", root / os.environ.get("BUILD", "build") / "apps"]
    for folder in folders:
        if os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise JobError(f"there is no program {name}; build Ferry, or set BUILD to its build folder")
    return found


def launcher(*names):
    for name in names:
        if shutil.which(name):
            return name
    raise JobError(f"there is none of {', '.join(names)}")


def job(command, variables, limit=LIMIT):
    """The rows that one job writes to standard output as JSON."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False,
            env={**os.environ, **variables})
    except subprocess.TimeoutExpired as error:
        raise JobError(f"no end after {limit} s: {' '.join(command)}") from error
    if done.returncode != 0:
        last = ([""] + done.stderr.strip().splitlines())[-1]
        raise JobError(f"exit {done.returncode}: {' '.join(command)}: {last}")
    try:
        return json.loads(done.stdout[done.stdout.index("["):])
    except ValueError as error:
        raise JobError(f"no JSON from {' '.join(command)}") from error


def run_ferry(ranks, arguments, variables=None):
    mpiexec = launcher("mpiexec.mpich", "mpiexec.hydra")
    command = [mpiexec, "-n", str(ranks), find_program("ferry-bench"), *arguments, "--json", "-"]
    return job(command, variables or {})


def run_openmpi(ranks, arguments):
    command = [
        launcher("mpiexec.openmpi"), "--allow-run-as-root", "--oversubscribe", "-n", str(ranks),
        find_program("ferry-bench-openmpi"), *arguments, "--json", "-"]
    return job(command, {})


def ferry_of(row):
    """What a row says of Ferry, without the peer."""
    return {key: value for key, value in row.items()
            if not key.startswith("peer") and key != "ratio"}


def one_pass(ranks, arguments, peers):
    """Rows of each peer once. A peer in the same MPI is interleaved with Ferry round by round; Open
    MPI needs a job of its own, and stands beside Ferry's times of this pass."""
    rows = []
    ferry = {}
    for peer in sorted(peers, key=lambda name: name == "openmpi"):
        if peer == "openmpi":
            if not ferry:
                ferry = {row["bytes"]: ferry_of(row)
                         for row in run_ferry(ranks, [*arguments, "--peer", "none"])}
            plain = [word for word in arguments if word != "--limit"]
            measured = [{**ferry[row["bytes"]], "peer_us_min": row["peer_us_min"],
                         "peer_us_median": row["peer_us_median"],
                         "peer_errors": row["peer_errors"]}
                        for row in run_openmpi(ranks, plain)]
        else:
            measured = run_ferry(ranks, arguments, TUNED if peer == "tuned" else None)
            ferry = {row["bytes"]: ferry_of(row) for row in measured}
        for row in measured:
            row["peer"] = peer
            row["ratio"] = row["peer_us_median"] / row["ferry_us_median"]
            rows.append(row)
    return rows


def merge(passes):
    """Over passes the smallest minimum, and the median of everything else that is a time."""
    groups = {}
    for row in (row for rows in passes for row in rows):
        groups.setdefault((row["peer"], row["bytes"]), []).append(row)
    merged = []
    for rows in groups.values():
        row = dict(rows[-1])
        for key in row:
            values = [r[key] for r in rows if isinstance(r.get(key), (int, float))]
            if key.endswith("_us_min"):
                row[key] = min(values)
            elif key.endswith("_us_median") or key in ("ratio", "over_limit", "busbw_gbps"):
                row[key] = statistics.median(values) if values else None
            elif key in ("errors", "peer_errors"):
                row[key] = sum(values) if values else None
        merged.append(row)
    return merged


def measure(ranks, arguments, peers, passes=1):
    """All peers in turns, several times over, the last first in every other pass."""
    done = []
    for number in range(passes):
        order = peers if number % 2 == 0 else peers[::-1]
        done.append(one_pass(ranks, arguments, order))
    return merge(done)


def available_peers():
    """Those of PEERS that this machine has, and why not the others."""
    missing = {}
    try:
        launcher("mpiexec.openmpi")
        find_program("ferry-bench-openmpi")
    except JobError as error:
        missing["openmpi"] = str(error)
    return [peer for peer in PEERS if peer not in missing], missing
