#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranks that may run on unequal sets of CPUs plan alike and deliver every byte (case 68).

usage: binding_test.py MPIEXEC FERRY_BENCH FERRY_INFO
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from support import script_cases

LIMIT = 120
MPIEXEC, BENCH, INFO = sys.argv[1:4]
CPUS = sorted(os.sched_getaffinity(0))
SIZES = "8,1024,1025,1904,1905,6144,6145,65536"
# One rank alone on the first CPU, one on the last, the others everywhere.
SETS = [CPUS[:1], CPUS[-1:], CPUS, CPUS]


def job(sets, arguments, **variables):
    command = [MPIEXEC]
    for number, cpus in enumerate(sets):
        command += [":"] if number else []
        command += ["-n", "1", "taskset", "-c", ",".join(map(str, cpus)), BENCH, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False,
                          env={**os.environ, **variables})


def test_every_byte_arrives_and_all_ranks_tell_the_same():
    for form in ("blocking", "persistent"):
        for memory in ("private", "shared"):
            for collective in ("alltoall", "allgather", "bcast"):
                with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
                    done = job(SETS, [
                        collective, "--form", form, "--memory", memory, "--sizes", SIZES, "--peer",
                        "none", "--iterations", "1", "--check", "--json", file.name],
                        FERRY_VERBOSE="2", FERRY_TIMEOUT="60")
                    assert done.returncode == 0, (form, memory, collective, done.stderr)
                    rows = json.load(file)
                assert [row["errors"] for row in rows] == [0] * len(SIZES.split(",")), rows
                check_alike(done.stderr)


def check_alike(text):
    """Each rank tells which path a kind of call takes: for one size all take the same."""
    paths = {}
    for line in text.splitlines():
        said = re.search(r"rank (\d+) of \d+.*: (slots|engine|mpi): .*?(\d+) bytes a block", line)
        if said:
            paths.setdefault(said.group(3), {})[said.group(1)] = said.group(2)
    assert paths, text[:500]
    for size, by_rank in paths.items():
        assert set(by_rank) == {"0", "1", "2", "3"}, (size, by_rank)
        assert len(set(by_rank.values())) == 1, (size, by_rank)


def test_the_same_with_variables_that_may_differ():
    """Spins and time limits are a matter of each rank."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        arguments = ["alltoall", "--sizes", SIZES, "--peer", "none", "--iterations", "1", "--check",
                     "--json", file.name]
        command = [MPIEXEC, "-n", "1", "-env", "FERRY_SPIN", "0", "taskset", "-c", str(CPUS[0]),
                   BENCH, *arguments, ":", "-n", "2", "-env", "FERRY_SPIN", "5000", BENCH, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False,
                              env={**os.environ, "FERRY_TIMEOUT": "60"})
        assert done.returncode == 0, done.stderr
        assert all(row["errors"] == 0 for row in json.load(file))


def info(*arguments, **variables):
    return subprocess.run([INFO, *arguments], capture_output=True, text=True, timeout=LIMIT,
                          check=True, env={**os.environ, **variables}).stdout


def test_numa_nodes_are_told():
    facts = json.loads(info("--json"))
    folders = [name for name in os.listdir("/sys/devices/system/node")
               if re.fullmatch(r"node\d+", name)] if os.path.isdir("/sys/devices/system/node") else ["node0"]
    assert facts["numa_nodes"] == len(folders), (facts["numa_nodes"], folders)
    assert {f"node{entry['node']}" for entry in facts["numa"]} == set(folders), facts["numa"]
    # A machine that hwloc makes up: two nodes of three cores.
    made_up = {"HWLOC_SYNTHETIC": "numa:2(memory=1073741824) core:3 pu:1"}
    nodes = json.loads(info("--json", **made_up))["numa"]
    assert nodes == [{"node": 0, "cpus": "0-2", "bytes": 1 << 30},
                     {"node": 1, "cpus": "3-5", "bytes": 1 << 30}], nodes
    text = info(**made_up)
    assert re.search(r"^NUMA node 1 +CPUs 3-5, 1 GiB$", text, re.MULTILINE), text


def main():
    if shutil.which("taskset") is None:
        print("skipped: there is no taskset")
        return 77
    return script_cases.run(globals())


if __name__ == "__main__":
    sys.exit(main())
