# SPDX-License-Identifier: MIT
"""The collective tests of MPICH itself, of the sources of Debian, under ferry-run: those that pass
without Ferry pass with it. Behind the usual arguments: names of programs, or "few" for those of FEW,
which need no configure; all of the list without."""

import re
import subprocess
import sys

import common

MOST_RANKS = 5
LIMIT_SECONDS = 600
# Known to fail or to hang with MPICH 4.0.2 itself.
LEFT_OUT = {"p_inactive"}
# Quick ones, of every kind and form of call.
FEW = ["alltoallv", "alltoallw_zeros", "allgatherv2", "bcasttest", "scatterv", "opmaxloc", "ibarrier",
       "nonblocking", "nonblocking2", "p_alltoallw", "p_gatherv", "p_order", "p_redscat"]
# What configure would find, as far as these programs ask.
CONFIGURED = """#define HAVE_STDARG_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_UNISTD_H 1
#define HAVE_USLEEP 1
#define HAVE_PTHREAD_H 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_MPI_WIN_CREATE 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
"""


def entries(folder):
    """(program, ranks, arguments, environment) of each line of the test list, but for those that
    configure fills in."""
    seen = set()
    for line in (folder / "testlist.in").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) < 2 or words[0][0] in "#@" or words[0] in LEFT_OUT:
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
    """Whether it passes, what it printed, calls that Ferry took, seconds."""
    program, ranks, arguments, settings = entry
    try:
        done = common.Run(ranks, [f"./{program}", *arguments], folder, ferry,
                          timeout=LIMIT_SECONDS, **settings)
    except subprocess.TimeoutExpired:
        return False, "time limit", 0, float(LIMIT_SECONDS)
    good = done.code == 0 and "No Errors" in done.out
    return good, done.out + done.err, done.taken, done.seconds


class Result:
    """What became of the lines of the test list."""

    def __init__(self):
        self.equal, self.below_fails, self.slower, self.faults = [], [], [], []
        self.programs, self.taken = set(), 0

    def note(self, entry, plain, ferry):
        name = " ".join([entry[0], str(entry[1]), *entry[2]])
        self.programs.add(entry[0])
        self.taken += ferry[2]
        if ferry[0] and plain[0]:
            self.equal.append(name)
        elif plain[0]:
            self.faults.append(f"{name}: {ferry[1][-600:]}")
        else:
            self.below_fails.append(f"{name} ({'passes' if ferry[0] else 'fails'} with Ferry)")
        if ferry[3] > 2 * plain[3] + 1:
            self.slower.append(f"{name}: {plain[3]:.1f} s without, {ferry[3]:.1f} s with Ferry")
        print(f"{name:32} {plain[0]:1} {plain[3]:7.1f} s without   {ferry[0]:1} {ferry[3]:7.1f} s "
              f"{ferry[2]:6} taken", flush=True)

    def tell(self):
        run = len(self.equal) + len(self.below_fails) + len(self.faults)
        print(f"{len(self.programs)} programs, {run} runs: {len(self.equal)} pass with and without, "
              f"{len(self.faults)} fail with Ferry alone, {len(self.below_fails)} fail without; "
              f"Ferry took {self.taken} calls")
        for title, names in (("fail without Ferry", self.below_fails), ("slower", self.slower)):
            print(f"{title}:", ", ".join(names) or "none")


def compile_few(tests):
    """Without configure, which takes longer than all the rest."""
    (tests / "include/mpitestconf.h").write_text(CONFIGURED, encoding="utf-8")
    compiler = ["mpicc.mpich", "-O1", "-w", "-Iinclude"]
    parts = ("mtest", "mtest_common", "mtest_thread")
    common.build([*compiler, "-c", *[f"util/{name}.c" for name in parts]], tests)
    objects = [f"{name}.o" for name in parts]
    for name in FEW:
        common.build([*compiler, f"coll/{name}.c", *objects, "-lpthread", "-o", f"coll/{name}"], tests)


def compile_all(tests, parts):
    """The programs of the folder coll, or those that are named."""
    if not (tests / "config.status").exists():
        common.build(["./configure", "CC=gcc", "MPICC=mpicc.mpich", "CFLAGS=-O1", "--with-mpi=/usr",
                      "--disable-cxx", "--disable-fortran", "--disable-romio",
                      "--disable-spawn"], tests)
    for part in ("util", "dtpools"):
        common.build(["make", "-C", part, "-j2", "-k"], tests)
    common.build(["make", "-C", "coll", "-j2", "-k", *parts], tests)


def main():
    common.need("mpicc.mpich", "make")
    few = sys.argv[4:] == ["few"]
    chosen = FEW if few else sys.argv[4:]
    result = Result()
    with common.work_folder("mpich_few" if few else "mpich_coll") as folder:
        tests = common.Apt(folder).source("mpich") / "test/mpi"
        if few:
            compile_few(tests)
        else:
            compile_all(tests, chosen)
        for entry in entries(tests / "coll"):
            if chosen and entry[0] not in chosen:
                continue
            result.note(entry, *(passes(tests / "coll", entry, ferry) for ferry in (False, True)))
    result.tell()
    if result.taken == 0:
        result.faults.append("nothing was tested")
    common.finish(result.faults)


if __name__ == "__main__":
    main()
