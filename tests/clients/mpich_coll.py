# SPDX-License-Identifier: MIT
"""The collective tests of MPICH itself, of the sources of Debian, under ferry-run: those that pass
without Ferry pass with it. Only programs that fail with Ferry are run without it as well. Behind the
usual arguments: names of programs, all of the list without."""

import re
import subprocess
import sys

import common

MOST_RANKS = 5
LIMIT_SECONDS = 120
# Known to fail or to hang with MPICH 4.0.2 itself.
LEFT_OUT = {"p_inactive"}


def entries(folder):
    """(program, ranks, arguments, environment) of each line of the test list."""
    seen = set()
    for line in (folder / "testlist").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) < 2 or words[0].startswith("#") or words[0] in LEFT_OUT:
            continue
        options = dict(re.findall(r"(\w+)=(\S+)", line))
        arguments = re.findall(r"\barg=(\S+)", line)
        settings = dict(part.split("=", 1) for part in re.findall(r"\benv=(\S+)", line))
        if "mpiversion" in options and float(options["mpiversion"]) > 4.0:
            continue
        entry = (words[0], min(int(words[1]), MOST_RANKS), tuple(arguments))
        if entry not in seen:
            seen.add(entry)
            yield *entry, settings


def passes(folder, entry, ferry):
    program, ranks, arguments, settings = entry
    try:
        done = common.Run(ranks, [f"./{program}", *arguments], folder, ferry,
                          timeout=LIMIT_SECONDS, **settings)
    except subprocess.TimeoutExpired:
        return False, "time limit", 0
    return done.code == 0 and "No Errors" in done.out, done.out + done.err, done.taken


def main():
    common.need("mpicc.mpich", "make")
    with common.work_folder("mpich_coll") as folder:
        tests = common.Apt(folder).source("mpich") / "test/mpi"
        if not (tests / "coll/allred").exists():
            common.build(["./configure", "CC=gcc", "MPICC=mpicc.mpich", "CFLAGS=-O1", "--with-mpi=/usr",
                          "--disable-cxx", "--disable-fortran", "--disable-romio",
                          "--disable-spawn"], tests)
            for part in ("util", "dtpools", "coll"):
                common.build(["make", "-C", part, "-j2", "-k"], tests)
        chosen = set(sys.argv[4:])
        passed, taken, faults = 0, 0, []
        for entry in entries(tests / "coll"):
            if (chosen and entry[0] not in chosen) or not (tests / "coll" / entry[0]).exists():
                continue
            well, text, calls = passes(tests / "coll", entry, True)
            taken += calls
            passed += well
            if well or not passes(tests / "coll", entry, False)[0]:
                continue
            faults.append(" ".join(map(str, entry[:2])) + f" {entry[2]}: {text[-600:]}")
            print(faults[-1], flush=True)
        print(f"{passed} of MPICH's collective tests pass under Ferry, which took {taken} calls")
        if passed == 0 or taken == 0:
            faults.append("nothing was tested")
        common.finish(faults)


if __name__ == "__main__":
    main()
