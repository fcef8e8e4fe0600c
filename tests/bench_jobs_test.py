#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs around ferry-bench: what they find in figures that are made up for it, and short runs.

usage: bench_jobs_test.py SOURCE_ROOT BUILD_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, BUILD = (Path(name).resolve() for name in sys.argv[1:3])
JOBS = ROOT / "apps" / "bench-jobs"
sys.path.insert(0, str(JOBS))
sys.dont_write_bytecode = True
import cliffs
import jobs
import targets

from support import script_cases

K = 1024


def tool(*arguments, limit=300, **variables):
    return subprocess.run(
        [sys.executable, "-B", str(JOBS), *map(str, arguments)], capture_output=True, text=True,
        timeout=limit, check=False, env={**os.environ, "BUILD": str(BUILD), **variables})


def times(of, ranks=2, offset=0, order="up", collective="alltoall"):
    return [{"collective": collective, "form": "blocking", "memory": "shared", "ranks": ranks,
             "offset": offset, "order": order, "bytes": size, "ferry_us_median": time}
            for size, time in of.items()]


def one(rows, cores, *words):
    found = cliffs.find(rows, cores)
    assert len(found) == 1, found
    for word in words:
        assert word in found[0], (word, found[0])


def test_no_cliff_in_smooth_times():
    smooth = {8: 1.0, 64: 1.1, 512: 1.0, 4096: 2.0}
    rows = times(smooth) + times(smooth, offset=3) + times(smooth, order="mixed")
    rows += times({size: 3.9 * time for size, time in smooth.items()}, ranks=3)
    assert cliffs.find(rows, 4) == []


def test_a_smaller_size_that_takes_longer():
    one(times({8: 1.0, 64: 2.5, 512: 2.0}), 2, "64 bytes take 2.50 us, 512 bytes 2.00 us", "1.25")
    assert cliffs.find(times({8: 2.39, 64: 2.0}), 2) == []


def test_unaligned():
    one(times({8: 1.0, 64: 1.0}) + times({8: 1.0, 64: 1.4}, offset=3), 2, "64 bytes", "offset 3", "1.40")
    assert cliffs.find(times({64: 1.0}) + times({64: 1.29}, offset=3), 2) == []


def test_order_of_sizes_both_ways():
    one(times({8: 1.0}) + times({8: 1.3}, order="mixed"), 2, "in mixed order", "1.30")
    one(times({8: 1.3}) + times({8: 1.0}, order="mixed"), 2, "in ascending order", "1.30")


def test_a_rank_more():
    # 3 ranks have 3 times the pairs of 2 ranks, and 1.5 times the cores.
    assert cliffs.work("alltoall", 2, 4) == 1 and cliffs.work("alltoall", 3, 4) == 2
    assert cliffs.work("bcast", 4, 2) == 1.5
    one(times({8: 1.0}) + times({8: 4.1}, ranks=3), 4, "3 ranks", "where 2 ranks scaled take 2.00 us")
    assert cliffs.find(times({8: 1.0}) + times({8: 3.9}, ranks=3), 4) == []
    # From one rank a core to more: a switch of processes, not judged; from there on it is.
    assert cliffs.find(times({8: 1.0}) + times({8: 30.0}, ranks=3), 2) == []
    one(times({8: 10.0}, ranks=3) + times({8: 50.0}, ranks=4), 2, "4 ranks")


def test_more_ranks_than_cores_within_a_millisecond():
    one(times({64: 1500.0}, ranks=4), 2, "64 bytes take 1500 us, allowed 1000")
    assert cliffs.find(times({64: 900.0}, ranks=8), 2) == []


def test_a_disturbed_time_is_forgiven_when_it_is_good_once():
    best = cliffs.best_of(times({8: 5.0, 64: 1.0}), times({8: 1.0, 64: 1.5}))
    assert [row["ferry_us_median"] for row in best] == [1.0, 1.0], best


def test_cliffs_of_a_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.json"
        for rows, status in ((times({8: 1.0, 64: 2.0}), 0), (times({8: 3.0, 64: 2.0}), 1)):
            path.write_text(json.dumps(rows))
            done = tool("cliffs", "--judge", path, "--cores", 2)
            assert done.returncode == status, done
            assert f"{status} cliffs in 2 times" in done.stdout, done.stdout
        path.write_text('[{"bytes": 1}]')
        assert tool("cliffs", "--judge", path).returncode == 2
        assert tool("cliffs", "--judge", folder + "/none").returncode == 2


def row(size, peer="mpi", ratio=5.0, ferry=1.0, over=1.0, **other):
    return {"collective": "alltoall", "form": "blocking", "memory": "shared", "ranks": 2,
            "bytes": size, "peer": peer, "ferry_us_median": ferry, "peer_us_median": ferry * ratio,
            "ratio": ratio, "limit_us_median": ferry / over, "over_limit": over, "path": "slots",
            "errors": 0, **other}


def missed(*rows, cores=2):
    text, count = targets.markdown(list(rows), cores, {"machine": "none"})
    assert f"{count} of " in text and text.count("**mpi") + text.count("**tuned") <= count, text
    return count, text


def test_targets():
    assert missed(row(8, ratio=4.0))[0] == 0
    count, text = missed(row(8, ratio=3.9))
    assert count == 1 and "**mpi / Ferry 3.90, wanted >= 4**" in text, text
    assert missed(row(8, ratio=3.6, memory="private"))[0] == 0
    assert missed(row(8 * K, ratio=9.9))[0] == 1 and missed(row(8 * K, ratio=10.0))[0] == 0
    assert missed(row(8 * K, ratio=10.0), row(8 * K, "tuned", 4.4))[0] == 1
    assert missed(row(1 << 20, ratio=3.0, over=1.04))[0] == 0
    count, text = missed(row(1 << 20, ratio=3.0, over=1.06))
    assert count == 1 and "Ferry / memcpy 1.06, wanted <= 1.05" in text, text
    assert missed(row(32 << 20, ratio=1.9, over=1.09))[0] == 0
    assert missed(row(32 << 20, ratio=0.9, over=2.0, memory="private"))[0] == 1
    assert missed(row(8, "openmpi", 1.9, collective="bcast"))[0] == 1
    assert missed(row(8, "openmpi", 0.5))[0] == 0, "only small broadcasts are held against Open MPI"
    assert missed(row(8, errors=3))[0] == 1


def test_targets_with_more_ranks_than_cores():
    assert missed(row(8, ratio=300.0, ferry=14.0, ranks=4))[0] == 0
    assert missed(row(8, ratio=300.0, ferry=16.0, ranks=4))[0] == 1
    assert missed(row(8, ratio=300.0, ferry=16.0, ranks=4), cores=4)[0] == 0
    assert missed(row(1 << 20, "openmpi", 0.99, ranks=4))[0] == 1
    assert missed(row(1 << 20, ratio=1.01, ranks=8))[0] == 0


def test_passes_are_merged():
    first, second, third = (
        [dict(row(8, ratio=r), peer_us_min=r, ferry_us_min=r)] for r in (2.0, 9.0, 4.0))
    merged = jobs.merge([first, second, third])
    assert len(merged) == 1 and merged[0]["ratio"] == 4.0 and merged[0]["peer_us_min"] == 2.0


def test_peers_in_one_run():
    peers, _ = jobs.available_peers()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        picture = ["--plot", Path(folder) / "out.svg"] if shutil.which("gnuplot") else []
        done = tool("peers", "bcast", "--peer", ",".join(peers), "--sizes", "8,8K", "--seconds",
                    0.02, "--passes", 2, "--check", "--json", path, *picture)
        assert done.returncode == 0, done.stderr
        rows = json.loads(path.read_text())
        if picture:
            drawn = (Path(folder) / "out.svg").read_text()
            assert all(word in drawn for word in ["Ferry", "memcpy", *peers]), drawn[:2000]
    assert {(r["peer"], r["bytes"]) for r in rows} == {(p, s) for p in peers for s in (8, 8 * K)}
    for r in rows:
        assert r["peer_us_median"] > 0 and r["ferry_us_median"] > 0 and r["errors"] == 0, r
    for peer in peers:
        assert f" {peer}" in done.stdout, done.stdout


def test_the_table_of_all():
    with tempfile.TemporaryDirectory() as folder:
        data, table = Path(folder) / "a.json", Path(folder) / "a.md"
        done = tool("all", "--quick", "--json", data, "--markdown", table)
        assert done.returncode in (0, 1), done.stderr
        result = json.loads(data.read_text())
        text = table.read_text()
        assert tool("all", "--judge", data).stdout == text + "\n"
    cases = {(r["ranks"], r["memory"], r["form"], r["bytes"]) for r in result["rows"]}
    assert len(cases) == 2 * 2 * 3, cases
    assert "2 ranks, alltoall, private memory, persistent" in text, text
    assert " of 12 rows miss a target." in text, text
    assert all(r["errors"] == 0 for r in result["rows"])


def test_the_table_of_all_without_time_says_what_it_lacks():
    done = tool("all", "--quick", "--minutes", 0)
    assert done.returncode == 1, done
    assert "0 of 0 rows miss" in done.stdout or "rows miss a target" in done.stdout, done.stdout
    assert done.stdout.count("the time is over") >= 7, done.stdout


def test_cliffs_run():
    done = tool("cliffs", "--quick", "--collective", "alltoall", "--form", "blocking", "--memory",
                "shared", "--ranks", "2,3")
    assert done.returncode in (0, 1) and " cliffs in 8 times" in done.stdout, done


def test_what_is_wrong_is_said():
    for arguments, word in (
            (["peers", "alltoall", "--peer", "gloo"], "gloo"),
            (["peers", "alltoall", "--sizes", "8X"], "8X"),
            (["all", "--judge", "/none"], "No such file"), (["peers", "gossip"], "gossip"), ([], "")):
        done = tool(*arguments)
        assert done.returncode == 2 and word in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
    done = tool("peers", "alltoall", "--sizes", "8", BUILD="none", PATH="/usr/bin:/bin")
    assert done.returncode == 2 and "no program ferry-bench" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(script_cases.run(globals()))
