#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drives ferry-bench and ferry-info as users do and checks what they print.

usage: bench_test.py MPIEXEC FERRY_BENCH FERRY_INFO FAULT_LIBRARY
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support import script_cases

LIMIT = 90  # seconds for one command
KEYS = [
    "collective", "form", "memory", "offset", "in_place", "root", "ranks", "peer", "bytes", "rounds",
    "ferry_us_min", "ferry_us_median", "peer_us_min", "peer_us_median", "limit_us_median", "ratio",
    "over_limit", "busbw_gbps", "path", "why", "errors", "peer_errors"]
PATHS = {"slots", "engine", "mpi", "local"}
CHECKED_CALLS = 8  # of Ferry per size: four before and four after timing
QUICK = ["--check", "--iterations", "2", "--json", "-"]

MPIEXEC = sys.argv[1]
BENCH, INFO, FAULTS = (str(Path(name).resolve()) for name in sys.argv[2:5])


def run(command, **variables):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, **variables})


def bench(ranks, *arguments, fault=None, **variables):
    command = [MPIEXEC, "-n", str(ranks)]
    if fault:
        # Through env, so that only ferry-bench gets it and not the launcher.
        command += ["env", f"LD_PRELOAD={FAULTS}", f"BENCH_FAULT={fault}"]
    return run([*command, BENCH, *map(str, arguments)], **variables)


def results(ranks, *arguments, fault=None, status=0):
    done = bench(ranks, *arguments, fault=fault)
    assert done.returncode == status, f"exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def check_result(row):
    assert list(row) == KEYS, list(row)
    assert 0 < row["ferry_us_min"] <= row["ferry_us_median"], row
    assert row["path"] in PATHS and row["why"], row
    if row["peer_us_median"] is None:
        assert row["peer_us_min"] is None and row["ratio"] is None and row["peer"] is None, row
    else:
        assert 0 < row["peer_us_min"] <= row["peer_us_median"], row
        assert abs(row["ratio"] * row["ferry_us_median"] / row["peer_us_median"] - 1) < 1e-9, row
    others = 1 if row["collective"] == "bcast" else row["ranks"] - 1
    bandwidth = row["bytes"] * others / row["ferry_us_median"] * 1e6 / 1e9
    assert abs(row["busbw_gbps"] - bandwidth) <= 1e-9 * max(bandwidth, 1), row


def test_every_collective_form_and_memory_is_right():
    for collective in ("alltoall", "allgather", "bcast"):
        for form in ("blocking", "nonblocking", "persistent"):
            for memory in ("private", "shared"):
                rows = results(
                    2, collective, "--form", form, "--memory", memory, "--min", 64, "--max", "1K",
                    *QUICK)
                assert [row["bytes"] for row in rows] == [64, 128, 256, 512, 1024]
                for row in rows:
                    check_result(row)
                    said = [row[key] for key in ("collective", "form", "memory", "ranks", "rounds")]
                    assert said == [collective, form, memory, 2, 2], row
                    assert row["errors"] == 0 and row["peer_us_median"] is not None, row


def test_in_place():
    for collective in ("alltoall", "allgather"):
        for form in ("blocking", "nonblocking", "persistent"):
            for row in results(
                    3, collective, "--in-place", "--form", form, "--peer", "none", "--min", "64K",
                    "--max", "128K", *QUICK):
                check_result(row)
                assert row["in_place"] and row["errors"] == 0, row


def test_odd_sizes_and_ranks():
    for ranks in (1, 2, 3):
        for size in (0, 1, 17, 4097, 1000003):
            for collective in ("alltoall", "allgather", "bcast"):
                rows = results(
                    ranks, collective, "--peer", "none", "--min", size, "--max", size, *QUICK)
                assert [(row["bytes"], row["errors"]) for row in rows] == [(size, 0)], rows
                check_result(rows[0])


def test_every_root():
    for root in range(3):
        rows = results(
            3, "bcast", "--root", root, "--peer", "none", "--min", 8, "--max", "64K", *QUICK)
        assert len(rows) == 14
        for row in rows:
            assert row["root"] == root and row["errors"] == 0, row


def test_unchecked_is_not_reported_as_right():
    done = bench(2, "alltoall", "--min", 8, "--max", 8, "--iterations", 1, "--json", "-")
    row = json.loads(done.stdout)[0]
    assert row["errors"] is None and row["peer_errors"] is None and row["rounds"] == 1, row


def test_without_a_peer_nothing_is_compared():
    row = results(2, "bcast", "--peer", "none", "--min", 8, "--max", 8, *QUICK)[0]
    check_result(row)
    assert row["ratio"] is None and row["peer_errors"] is None, row


def test_sizes_in_any_order_unaligned_and_beside_the_limit():
    for collective in ("alltoall", "allgather", "bcast"):
        rows = results(
            3, collective, "--sizes", "4097,8,1K", "--offset", 5, "--limit", "--memory", "alloc",
            *QUICK)
        assert [row["bytes"] for row in rows] == [4097, 8, 1024], rows
        for row in rows:
            check_result(row)
            assert row["errors"] == 0 and row["offset"] == 5 and row["memory"] == "shared", row
            assert row["limit_us_median"] > 0, row
            over = row["ferry_us_median"] / row["limit_us_median"]
            assert abs(row["over_limit"] / over - 1) < 1e-9, row
    assert results(2, "bcast", "--sizes", "8", *QUICK)[0]["limit_us_median"] is None


def test_plot():
    with tempfile.TemporaryDirectory() as folder:
        picture, data = Path(folder) / "a.svg", Path(folder) / "a.json"
        measure = [2, "alltoall", "--sizes", "8,64", "--iterations", 1]
        without = bench(*measure, "--plot", picture, PATH=folder)
        assert without.returncode != 0 and "gnuplot-nox" in without.stderr, without.stderr
        if shutil.which("gnuplot") is None:
            print("gnuplot is not there: nothing was drawn")
            return
        done = bench(*measure, "--limit", "--plot", picture, "--json", data)
        assert done.returncode == 0, done.stderr
        drawn = picture.read_text()
        for word in ("Ferry", "mpi", "memcpy", "alltoall, blocking, private memory, 2 ranks"):
            assert word in drawn, word
        png = Path(folder) / "b.png"
        assert run([BENCH, "--draw", str(data), "--plot", str(png)]).returncode == 0
        assert png.read_bytes().startswith(b"\x89PNG")
        for bad, word in (("[]", "no results"), ("{", "no results of ferry-bench"),
                          ('[{"bytes": "x"}]', "no results of ferry-bench")):
            data.write_text(bad)
            done = run([BENCH, "--draw", str(data), "--plot", str(png)])
            assert done.returncode != 0 and word in done.stderr, done.stderr


def test_table_and_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        done = bench(
            2, "allgather", "--check", "--iterations", 3, "--min", 8, "--max", 32, "--json", path)
        assert done.returncode == 0, done.stderr
        rows = json.loads(path.read_text())
    lines = done.stdout.splitlines()
    assert lines[0].startswith("allgather, blocking, private memory, 2 ranks"), lines
    assert lines[1].split()[0] == "bytes", lines
    for row, line in zip(rows, lines[2:5], strict=True):
        cells = line.split()
        assert cells[0] == str(row["bytes"]) and cells[-2:] == [row["path"], "0"], line
        assert cells[2] == f"{row['ferry_us_median']:.2f}", line
    for row in rows:
        why = re.sub(rf"\b{row['bytes']} bytes", "N bytes", row["why"])
        reason = f"{row['path']}: {why}"
        assert any(line.endswith(f" bytes: {reason}") for line in lines[5:]), lines
    assert len(lines) == len(set(lines)), "a reason is printed twice"
    assert "\r" not in done.stderr, "progress though standard error is no terminal"


def test_table_goes_to_standard_error_when_json_takes_the_output():
    done = bench(2, "bcast", "--min", 8, "--max", 8, *QUICK)
    assert len(json.loads(done.stdout)) == 1
    assert "Ferry min" in done.stderr, done.stderr


def test_every_fault_is_noticed():
    size = 64
    everything = CHECKED_CALLS * 3 * 3 * size
    for fault, errors in {
            "first-byte": CHECKED_CALLS, "last-byte": CHECKED_CALLS, "send": CHECKED_CALLS,
            "never": everything, "before": None, "behind": None, "swap": None,
            "every-other": None}.items():
        done = bench(
            3, "alltoall", "--peer", "none", "--min", size, "--max", size, *QUICK, fault=fault)
        assert done.returncode == 1, f"{fault}: exit {done.returncode}: {done.stderr}"
        seen = json.loads(done.stdout)[0]["errors"]
        assert seen == errors if errors else seen > 0, f"{fault}: {seen} errors"


def test_bad_command_lines():
    for arguments, word in [
            ([], "which collective"), (["scan"], "scan"), (["alltoall", "bcast"], ""),
            (["alltoall", "--from", "x"], "from"), (["alltoall", "--form", "fast"], "fast"),
            (["alltoall", "--form"], "form"), (["alltoall", "--min", "8X"], "8X"),
            (["alltoall", "--min", "64", "--max", "8"], "larger"),
            (["alltoall", "--min", "9", "--max", "15"], "power of two"),
            (["alltoall", "--min", "-8"], "-8"), (["alltoall", "--max", "8000000000G"], "large"),
            (["alltoall", "--iterations", "0"], "iterations"),
            (["alltoall", "--iterations", "x"], "x"), (["alltoall", "--mem", "shared"], "mem"),
            (["alltoall", "--memory", "tape"], "tape"), (["alltoall", "--peer", "gloo"], "gloo"),
            (["alltoall", "--peer", "mpi,tuned"], "ferry-bench-jobs peers"),
            (["alltoall", "--sizes", "8,x"], "'x'"), (["alltoall", "--sizes", ""], "--sizes"),
            (["alltoall", "--sizes", "8", "--min", "8"], "--sizes"),
            (["alltoall", "--offset", "4096"], "offset"), (["alltoall", "--offset", "-1"], "offset"),
            (["alltoall", "--seconds", "0"], "seconds"), (["alltoall", "--plot", "a.pdf"], ".svg"),
            (["alltoall", "--plot", ".svg"], ".svg"), (["--draw", "x"], "--plot"),
            (["alltoall", "--root", "0"], "root"), (["bcast", "--root", "2"], "root"),
            (["bcast", "--root", "-1"], "root"), (["bcast", "--in-place"], "in-place"),
            (["alltoall", "--json", "/no/such/folder/x"], "No such file"),
            (["alltoall", "--json", ""], "json")]:
        done = bench(2, *arguments)
        assert done.returncode == 2, f"{arguments}: exit {done.returncode}: {done.stderr}"
        said = [line for line in done.stderr.splitlines() if line.startswith("ferry-bench: ")]
        assert len(said) == 1 and word in said[0], f"{arguments}: {done.stderr}"
        assert done.stdout == "", f"{arguments}: {done.stdout}"


def test_no_memory_is_a_message_and_no_crash():
    done = bench(
        2, "alltoall", "--memory", "shared", "--min", "64M", "--max", "64M",
        FERRY_HEAP_MAX="1M")
    assert done.returncode not in (0, 1, 2), done.returncode
    assert "ferry-bench: rank " in done.stderr and "FERRY_HEAP_MAX" in done.stderr, done.stderr


def test_help():
    done = bench(2, "--help")
    assert done.returncode == 0 and done.stdout.count("Usage:") == 1, done.stdout
    for option in ("min", "max", "form", "memory", "in-place", "root", "peer", "iterations",
                   "check", "json", "seed", "sizes", "offset", "limit", "seconds", "plot", "draw"):
        assert f"--{option} " in done.stdout, option


def test_info():
    text = run([INFO])
    report = json.loads(run([INFO, "--json"]).stdout)
    assert text.returncode == 0 and report["host"] in text.stdout
    assert report["cores_allowed"] == len(os.sched_getaffinity(0))
    assert {"inline", "threads", "amd", "nvidia"} == {e["name"] for e in report["engines"]}
    for engine in report["engines"]:
        assert engine["available"] == (engine["reason"] == ""), engine
    pinned = run(["taskset", "-c", str(min(os.sched_getaffinity(0))), INFO, "--json"])
    assert json.loads(pinned.stdout)["cores_allowed"] == 1


def test_info_environment():
    text = run([INFO, "--env"])
    assert text.returncode == 0 and "FERRY_" in text.stdout
    assert "FERRY_" in json.dumps(json.loads(run([INFO, "--env", "--json"]).stdout))
    page = run([INFO, "--env", "--markdown"])
    assert page.returncode == 0 and "FERRY_" in page.stdout and "|" in page.stdout


def test_info_command_line():
    version = run([INFO, "--version"])
    assert version.returncode == 0 and version.stdout.startswith("ferry "), version.stdout
    assert run([INFO, "--help"]).stdout.startswith("Usage: ferry-info")
    for bad in (["--jsn"], ["x"], ["--markdown"], ["--env", "--json", "--markdown"]):
        done = run([INFO, *bad])
        assert done.returncode == 2 and done.stderr.startswith("ferry-info: "), bad
        assert done.stdout == "", bad
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [INFO], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(script_cases.run(globals()))
