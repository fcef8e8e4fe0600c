#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ferry-tune as administrators do and loads what it writes.

usage: tune_test.py MPIEXEC FERRY_TUNE FERRY_BENCH FERRY_INFO
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from support import script_cases

LIMIT = 180  # seconds for one command
MPIEXEC = sys.argv[1]
TUNE, BENCH, INFO = (str(Path(name).resolve()) for name in sys.argv[2:5])


def run(command, **variables):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, **variables})


def checksum(content):
    """As doc/tuning.md has it."""
    value = 0xcbf29ce484222325
    for byte in json.dumps(
            content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"fnv1a64:{value:016x}"


def test_a_table_is_measured_written_and_loaded():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.json"
        done = run([MPIEXEC, "-n", 2, TUNE, "--quick", "-o", path], FERRY_SLOT_BYTES="64")
        if len(os.sched_getaffinity(0)) < 2:
            assert done.returncode == 1 and "one core" in done.stderr, done.stderr
            return
        if "nothing could be measured" in done.stderr: # a machine that is busy all the time
            assert done.returncode == 1 and os.listdir(folder) == [], done.stderr
            return
        assert done.returncode == 0, done.stderr
        assert done.stdout == "", "one process measures, and it writes to the file"
        content = json.loads(path.read_text())
        assert content.pop("checksum") == checksum(content), content
        assert os.listdir(folder) == ["table.json"], os.listdir(folder)
        shown = run([INFO, "--table"], FERRY_TABLE=str(path))
        assert shown.returncode == 0 and shown.stdout.startswith(f"{path}: "), shown
        again = run([INFO, "--table", "--json"], FERRY_TABLE=str(path))
        assert json.loads(again.stdout) == json.loads(path.read_text())
        builtin = json.loads(run([INFO, "--table", "--json"], FERRY_TABLE="builtin").stdout)
        for name, entry in content["entries"].items():
            said = [line for line in done.stderr.splitlines() if f": {name}: " in line]
            if entry["from"] == "measured":
                assert f"{name}: {entry['value']}, spread {entry['spread']} %" in said[0], said
            else:
                assert entry["value"] == builtin["entries"][name]["value"], name
                assert not said or "built-in" in said[0] or "nothing to measure" in said[0], said
        assert any("rep_movsb_from" in line for line in done.stderr.splitlines()), done.stderr
        bench = run([MPIEXEC, "-n", 2, BENCH, "alltoall", "--sizes", "8,64K", "--iterations", 1,
                     "--peer", "none", "--check", "--json", "-"], FERRY_TABLE=str(path))
        for row in json.loads(bench.stdout):
            assert re.search(rf"\(\w+ \d+, {re.escape(str(path))}\)$", row["why"]), row["why"]


def table_with(folder, edit):
    content = json.loads(run([INFO, "--table", "--json"], FERRY_TABLE="builtin").stdout)
    content.pop("checksum")
    edit(content)
    content["checksum"] = checksum(content)
    path = Path(folder) / "table.json"
    path.write_text(json.dumps(content, indent=2))
    return path


def test_a_table_that_another_program_wrote():
    with tempfile.TemporaryDirectory() as folder:
        def smaller(content):
            content["entries"]["slot_bytes"].update(value=100, **{"from": "measured"})
            content["machine"]["cpu"] = "Ein schöner Prozessor"
        path = table_with(folder, smaller)
        bench = [MPIEXEC, "-n", 2, BENCH, "alltoall", "--iterations", 1, "--peer", "none", "--json",
                 "-", "--sizes", "100,101"]
        below, above = json.loads(run(bench, FERRY_TABLE=str(path)).stdout)
        assert below["path"] == "slots" and above["path"] == "engine", (below, above)
        assert below["why"].endswith(f"(slot_bytes 100, {path})"), below
        # A variable wins over the table.
        _, above = json.loads(run(bench, FERRY_TABLE=str(path), FERRY_SLOT_BYTES="1K").stdout)
        assert above["path"] == "slots" and above["why"].endswith("(FERRY_SLOT_BYTES 1024)"), above


def test_wrong_tables_stop_a_job_with_file_and_line():
    bench = [MPIEXEC, "-n", 2, BENCH, "alltoall", "--sizes", "8", "--iterations", 1]
    with tempfile.TemporaryDirectory() as folder:
        path = table_with(folder, lambda content: content["entries"]["spins"].update(value=10**7))
        line = 1 + path.read_text().splitlines().index('    "spins": {')
        for command in (bench, [INFO, "--table"]):
            done = run(command, FERRY_TABLE=str(path))
            said = re.search(rf"{re.escape(str(path))}:(\d+): entries/spins/value is 10000000",
                             done.stderr)
            assert done.returncode != 0 and said, done.stderr
            assert line < int(said.group(1)) < line + 5, (line, said.group(0))
        cut = path.read_text()[:200]
        path.write_text(cut)
        done = run(bench, FERRY_TABLE=str(path))
        assert done.returncode != 0 and f"{path}:" in done.stderr, done.stderr
        assert "this is no JSON" in done.stderr, done.stderr
        done = run(bench, FERRY_TABLE=folder + "/none")
        assert done.returncode != 0 and "cannot be read: No such file" in done.stderr, done.stderr


def test_ranks_with_different_tables_are_told():
    with tempfile.TemporaryDirectory() as folder:
        path = table_with(folder, lambda content: content["entries"]["slot_depth"].update(value=4))
        each = [BENCH, "alltoall", "--sizes", "8", "--iterations", 1]
        done = run([MPIEXEC, "-n", 1, "-env", "FERRY_TABLE", path, *each, ":", "-n", 1, "-env",
                    "FERRY_TABLE", "builtin", *each])
        assert done.returncode != 0, done.stdout
        assert "the table (FERRY_TABLE) is not the same on rank 0 and on rank 1" in done.stderr, done


def test_where_the_table_comes_from():
    with tempfile.TemporaryDirectory() as folder:
        path = table_with(folder, lambda content: content.update(date="2027-01-01"))
        home = Path(folder) / "config" / "ferry"
        home.mkdir(parents=True)
        path.rename(home / "table.json")
        clean = {k: v for k, v in os.environ.items() if k != "FERRY_TABLE"}
        done = subprocess.run(
            [INFO, "--table"], capture_output=True, text=True, timeout=LIMIT, check=False,
            env={**clean, "XDG_CONFIG_HOME": str(home.parent)})
        assert done.stdout.startswith(f"{home}/table.json: ") and "2027-01-01" in done.stdout, done


def test_command_line():
    assert run([TUNE, "--help"]).stdout.startswith("Usage: ferry-tune")
    assert run([TUNE, "--version"]).stdout.startswith("ferry ")
    for bad in (["--fast"], ["-o"], ["-o", ""], ["x"], ["--mpiexec"]):
        done = run([TUNE, *bad])
        assert done.returncode == 2 and "--help" in done.stderr and done.stdout == "", bad
    done = run([TUNE, "-o", "/no/such/folder/t", "--mpiexec", MPIEXEC])
    assert done.returncode == 1 and "/no/such/folder/t: No such file" in done.stderr, done.stderr
    done = run([TUNE, "--mpiexec", "no-such-mpiexec"])
    assert done.returncode == 1 and "no-such-mpiexec" in done.stderr, done.stderr
    done = run([TUNE, "--quick", "--mpiexec", "/bin/false"])
    assert done.returncode == 1 and "failed" in done.stderr, done.stderr
    one = run(["taskset", "-c", min(os.sched_getaffinity(0)), TUNE, "--quick"])
    assert one.returncode == 1 and "one core" in one.stderr, one.stderr


if __name__ == "__main__":
    sys.exit(script_cases.run(globals()))
