# SPDX-License-Identifier: MIT
"""Runs that take several MPI jobs: peers, cliffs, and the table of all."""

import argparse
import datetime
import itertools
import json
import os
import platform
import subprocess
import sys
import time

import cliffs
import jobs
import targets

COLLECTIVES = ("alltoall", "allgather", "bcast")
FORMS = ("blocking", "persistent")
MEMORIES = ("private", "shared")
# Sizes of the table, and the time for one of them, by ranks.
TABLE = {
    2: ("8,512,2K,8K,32K,128K,512K,2M,8M,32M", 1.0),
    4: ("8,2K,32K,512K,4M", 0.7),
    8: ("8,2K,32K,512K,2M", 0.7),
}
QUICK = {2: ("8,8K", 0.05), 4: ("8", 0.05)}


def say(text):
    print(f"ferry-bench-jobs: {text}", file=sys.stderr, flush=True)


def cores():
    return len(os.sched_getaffinity(0))


def facts():
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    table = subprocess.run([jobs.find_program("ferry-info"), "--table"], capture_output=True,
                           text=True, timeout=60, check=False)
    if table.returncode != 0:
        raise jobs.JobError(table.stderr.strip())
    return {"date": datetime.date.today().isoformat(), "machine": f"{cores()} cores of {model}",
            "kernel": platform.release(), "load before": f"{os.getloadavg()[0]:.2f}",
            "table": table.stdout.splitlines()[0]}


def choose_peers(text):
    wanted = text.split(",")
    for peer in wanted:
        if peer not in jobs.PEERS:
            raise jobs.JobError(f"--peer '{peer}' is not one of {', '.join(jobs.PEERS)}")
    _, missing = jobs.available_peers()
    for peer in wanted:
        if peer in missing:
            raise jobs.JobError(f"--peer {peer}: {missing[peer]}")
    return wanted


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def draw(path, plot):
    bench = jobs.find_program("ferry-bench")
    if os.spawnl(os.P_WAIT, bench, bench, "--draw", path, "--plot", plot) != 0:
        raise jobs.JobError(f"{plot} was not drawn")


def run_peers(options):
    peers = choose_peers(options.peer)
    arguments = [
        options.collective, "--form", options.form, "--memory", options.memory, "--sizes",
        options.sizes, "--seconds", str(options.seconds), "--limit"]
    if options.check:
        arguments.append("--check")
    rows = jobs.measure(options.ranks, arguments, peers, options.passes)
    table = targets.combine(rows)
    print(f"{options.collective}, {options.form}, {options.memory} memory, {options.ranks} ranks; "
          "times in microseconds, medians")
    print(f"{'bytes':>11} {'Ferry':>10} {'memcpy':>10}" +
          "".join(f" {peer:>10} {'ratio':>6}" for peer in peers))
    for case in table:
        line = f"{case['bytes']:>11} {case['ferry_us']:>10.2f} {targets.number(case['limit_us']):>10}"
        for peer in peers:
            line += f" {case['peer_us'][peer]:>10.2f} {case['ratios'][peer]:>6.2f}"
        print(line)
    if options.json:
        write(options.json, json.dumps(rows, indent=2) + "\n")
    if options.plot:
        path = options.json or options.plot + ".json"
        write(path, json.dumps(rows, indent=2) + "\n")
        draw(path, options.plot)
    return 1 if any(case["errors"] for case in table) else 0


def run_cliffs(options):
    if options.judge:
        with open(options.judge, encoding="utf-8") as file:
            rows = json.load(file)
    else:
        ranks = [int(word) for word in options.ranks.split(",")]
        cases = list(itertools.product(
            options.collective.split(","), options.form.split(","), options.memory.split(",")))
        sizes = [8, 4096] if options.quick else None
        rows = cliffs.hunt(cases, ranks, options.cores, say, sizes, 0.02 if options.quick else 0.3,
                           1 if options.quick else 3)
    if options.json:
        write(options.json, json.dumps(rows, indent=2) + "\n")
    found = cliffs.find(rows, options.cores)
    for violation in found:
        print(violation)
    print(f"{len(found)} cliffs in {len(rows)} times")
    return 1 if found else 0


def finish(options, result):
    text, missed = targets.markdown(result["rows"], result["cores"], result["facts"])
    text += "".join(f"\nnot measured: {line}\n" for line in result["failures"])
    if options.markdown:
        write(options.markdown, text)
    else:
        print(text)
    say(f"{missed} rows miss a target, {len(result['failures'])} jobs failed")
    return 1 if missed or result["failures"] else 0


def run_all(options):
    if options.judge:
        with open(options.judge, encoding="utf-8") as file:
            return finish(options, json.load(file))
    peers, missing = jobs.available_peers()
    failures = [f"{peer}: {why}" for peer, why in missing.items()]
    result = {"facts": facts(), "cores": cores(), "rows": [], "failures": failures}
    collectives = COLLECTIVES[:1] if options.quick else COLLECTIVES
    plan = [(ranks, *case) for ranks in (QUICK if options.quick else TABLE)
            for case in itertools.product(collectives, MEMORIES, FORMS)]
    start = time.monotonic()
    for number, (ranks, collective, memory, form) in enumerate(plan):
        spent = time.monotonic() - start
        left = f", about {spent / number * (len(plan) - number):.0f} s left" if number else ""
        say(f"{number + 1} of {len(plan)}: {ranks} ranks, {collective}, {memory}, {form}{left}")
        sizes, seconds = (QUICK if options.quick else TABLE)[ranks]
        arguments = [
            collective, "--form", form, "--memory", memory, "--sizes", sizes, "--seconds",
            str(seconds), "--limit", "--check"]
        # Its one variable matters where a core is free for each rank.
        here = [peer for peer in peers if peer != "tuned" or ranks <= cores()]
        if spent > 60 * options.minutes:
            failures.append(f"{ranks} ranks, {collective}, {memory}, {form}: the time is over")
            continue
        # Where one peer fails, the others still count.
        for some in (here, [peer for peer in here if peer != "openmpi"], ["mpi"]):
            try:
                result["rows"] += jobs.measure(ranks, arguments, some)
                break
            except jobs.JobError as error:
                say(str(error))
                failures.append(str(error))
        if options.json:
            write(options.json, json.dumps(result, indent=1) + "\n")
    return finish(options, result)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="ferry-bench-jobs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    peers = commands.add_parser("peers", help="Ferry against several peers in turns")
    peers.add_argument("collective", choices=COLLECTIVES)
    peers.add_argument("--peer", default="mpi,tuned", help="list of mpi (the MPI below as it comes), "
                       "tuned (with UCX_RNDV_THRESH=65536), openmpi")
    peers.add_argument("--ranks", type=int, default=2)
    peers.add_argument("--form", default="blocking", choices=("blocking", "nonblocking", "persistent"))
    peers.add_argument("--memory", default="private", choices=("private", "shared", "alloc"))
    peers.add_argument("--sizes", default="8,64,512,2K,8K,32K,128K,512K,2M")
    peers.add_argument("--seconds", type=float, default=1.0, help="for a size in one job, at most")
    peers.add_argument("--passes", type=int, default=3, help="jobs of each peer, in turns")
    peers.add_argument("--check", action="store_true", help="verify every byte")
    peers.add_argument("--json", help="write the results to this file")
    peers.add_argument("--plot", help="draw them: FILE.svg or FILE.png")
    peers.set_defaults(run=run_peers)

    cliff = commands.add_parser("cliffs", help="look for steps in the times; 1 when there are any")
    cliff.add_argument("--collective", default=",".join(COLLECTIVES))
    cliff.add_argument("--form", default=",".join(FORMS))
    cliff.add_argument("--memory", default=",".join(MEMORIES))
    cliff.add_argument("--ranks", default="2,3,4,5")
    cliff.add_argument("--cores", type=int, default=cores(), help="cores that the ranks run on")
    cliff.add_argument("--quick", action="store_true", help="two sizes, briefly")
    cliff.add_argument("--json", help="write the times to this file")
    cliff.add_argument("--judge", metavar="FILE", help="measure nothing, judge the times of a file")
    cliff.set_defaults(run=run_cliffs)

    every = commands.add_parser("all", help="the whole table of targets; 1 when a row misses")
    every.add_argument("--quick", action="store_true", help="few sizes, briefly: no figures to quote")
    every.add_argument("--minutes", type=float, default=12.0,
                       help="then the cases that are left are listed as not measured (12)")
    every.add_argument("--json", help="write the results to this file, job by job")
    every.add_argument("--markdown", help="write the table to this file")
    every.add_argument("--judge", metavar="FILE", help="measure nothing, judge the results of a file")
    every.set_defaults(run=run_all)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    try:
        return options.run(options)
    except (jobs.JobError, OSError, ValueError, KeyError, TypeError) as error:
        say(f"{type(error).__name__}: {error}" if not isinstance(error, jobs.JobError) else str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
