# SPDX-License-Identifier: MIT
"""What Ferry tells about the calls of a program, what a tool of the PMPI kind sees above and below
it, FERRY=off, and ferry-run itself.
Arguments: mpiexec, ferry-run, the programs `plain` and `heap`, the library of the tool."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

MPIEXEC, FERRY_RUN, PLAIN, HEAP, TOOL = sys.argv[1:]
faults = []


def run(command, **settings):
    environment = {key: text for key, text in os.environ.items() if not key.startswith("FERRY")}
    environment.pop("LD_PRELOAD", None)
    environment.pop("MALLOC_PERTURB_", None)  # has the C library fill all that is allocated
    done = subprocess.run(
        command, env=environment | settings, text=True, capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def job(ranks, *command, **settings):
    genv = [part for key, text in settings.items() for part in ("-genv", key, text)]
    return run([MPIEXEC, *genv, "-n", str(ranks), *command])


def check(what, condition, seen):
    if not condition:
        faults.append(f"{what}; seen: {seen}")


def lines(text):
    """The lines about calls, without those about the path of each kind of call."""
    return sorted(line for line in text.splitlines()
                  if line.startswith("ferry:") and " taken" in line)


def tallies():
    expected = [
        "ferry: MPI_COMM_WORLD: MPI_Alltoall 8 taken (engine 3, slots 5)",
        "ferry: MPI_COMM_WORLD: MPI_Alltoall_init 1 taken, 4 started (slots 4)",
        "ferry: both: MPI_Allgather 0 taken, 2 passed: inter-communicator",
    ]
    code, _, told = job(3, FERRY_RUN, PLAIN, FERRY_VERBOSE="1")
    seen = lines(told)
    check("FERRY_VERBOSE=1", code == 0 and set(expected) <= set(seen), told)
    code, _, told = job(3, FERRY_RUN, PLAIN, FERRY_VERBOSE="2")
    for rank in range(3):
        line = f"ferry: rank {rank} of 3, MPI_COMM_WORLD: MPI_Alltoall 8 taken (engine 3, slots 5)"
        check("FERRY_VERBOSE=2", code == 0 and line in lines(told), told)
    code, _, told = job(3, FERRY_RUN, PLAIN)
    check("not verbose", code == 0 and told == "", told)


def apart():
    """Ranks without common memory: the first blocking call is Ferry's, later ones are not, unless a
    rank has a reason to keep them."""
    def pairs(told):
        return [line for line in lines(told) if "MPI_COMM_WORLD: MPI_Alltoall " in line]

    cores = len(os.sched_getaffinity(0))
    gpu = any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")))
    code, _, told = job(2, FERRY_RUN, PLAIN, FERRY_VERBOSE="1", FERRY_NODES="block:2")
    passed = "ferry: MPI_COMM_WORLD: MPI_Alltoall 1 taken (mpi 1), 7 passed: ranks share no memory"
    taken = "ferry: MPI_COMM_WORLD: MPI_Alltoall 8 taken (mpi 8)"
    check("apart", code == 0 and pairs(told) == [passed if cores >= 2 and not gpu else taken], told)
    command = [MPIEXEC]
    for variable in ("FERRY_TIMEOUT", "FERRY_SPIN"):
        command += [":"] if variable == "FERRY_SPIN" else []
        command += ["-n", "1", "-env", variable, "60", FERRY_RUN, PLAIN]
    code, _, told = run(command, FERRY_VERBOSE="1", FERRY_NODES="block:2")
    check("apart, a time limit on one rank", code == 0 and pairs(told) == [taken], told)


def off():
    code, _, told = job(3, FERRY_RUN, PLAIN, FERRY="off", FERRY_VERBOSE="1")
    check("FERRY=off", code == 0 and lines(told) == [], told)


def wrong_variable():
    code, _, told = job(2, FERRY_RUN, PLAIN, FERRY_SPIN="often")
    check("wrong variable", code != 0 and "FERRY_SPIN=often is not allowed" in told, told)
    named = re.search(r"MPI_Alltoall: rank [01] of 2: FERRY_SPIN=often", told)
    check("wrong variable, function and rank", named is not None, told)


def tools():
    seen_by_tool = "tool: 8 alltoall, 1 exscan, 4 wait"
    code, out, told = job(3, FERRY_RUN, PLAIN, LD_PRELOAD=TOOL, FERRY_VERBOSE="1")
    check("tool above sees all", code == 0 and seen_by_tool in out, out + told)
    taken = "ferry: MPI_COMM_WORLD: MPI_Alltoall 8 taken (engine 3, slots 5)"
    check("Ferry below a tool", taken in told, told)
    _, preload, _ = run([FERRY_RUN, "--print"])
    below = preload.strip() + ":" + TOOL
    code, out, told = job(3, PLAIN, LD_PRELOAD=below, FERRY_VERBOSE="1")
    check("Ferry above a tool", code == 0 and taken in told, told)
    check("tool below sees the rest", "tool: 0 alltoall, 1 exscan, 0 wait" in out, out)
    code, out, told = job(3, PLAIN, LD_PRELOAD=below, FERRY="off")
    check("tool below sees all when off", code == 0 and seen_by_tool in out, out + told)


def shared_heap():
    """Vectors of the program are mapped by the other rank, and only then."""
    for settings, arguments, path in [
        ({"FERRY_SHARE_HEAP": "1"}, [], "1 pushed into mapped receive buffers"),
        ({}, ["off"], "1 pulled"),
    ]:
        code, _, told = job(2, FERRY_RUN, HEAP, *arguments, FERRY_VERBOSE="1", **settings)
        check(f"heap {settings}", code == 0 and path in told, told)


COUNTED = ("Alltoall Alltoallv Alltoallw Allgather Allgatherv Bcast Gather Gatherv Scatter Scatterv "
           "Allreduce Reduce Reduce_scatter Reduce_scatter_block").split()
HANDLES = ("Start Startall Wait Waitall Waitany Waitsome Test Testall Testany Testsome Request_free "
           "Request_get_status Cancel Alloc_mem Free_mem").split()


def symbols():
    """Every form of every collective under both names, and nothing that a program may miss."""
    names = set(HANDLES)
    for name in COUNTED + ["Barrier"]:
        forms = [name, "I" + name.lower(), name + "_init"]
        names |= set(forms + [form + "_c" for form in forms if name != "Barrier"])
    expected = {prefix + name for prefix in ("MPI_", "PMPI_") for name in names}
    _, preload, _ = run([FERRY_RUN, "--print"])
    _, listed, _ = run(["nm", "-D", "--defined-only", preload.strip()])
    exported = {line.split()[-1] for line in listed.splitlines()}
    exported = {name for name in exported if not name.startswith("ferry_")}
    expected.add("ucp_worker_progress")
    check("symbols", exported == expected, sorted(exported ^ expected))


def options():
    code, out, _ = run([FERRY_RUN, "--help"])
    check("--help", code == 0 and out.startswith("Usage: ferry-run"), out)
    code, out, _ = run([FERRY_RUN, "--version"])
    check("--version", code == 0 and out.startswith("ferry-run "), out)
    code, out, _ = run([FERRY_RUN, "--print"], LD_PRELOAD="/a/tool.so")
    check("--print", code == 0 and out.startswith("/a/tool.so:/") and "libferry-mpi.so" in out, out)
    for command, code, text in [
        ([], 2, "no program is given"),
        (["--fast"], 2, "unknown option --fast"),
        (["no-such-program"], 127, "cannot run no-such-program: No such file"),
        (["/dev/null"], 126, "cannot run /dev/null: Permission denied"),
    ]:
        seen = run([FERRY_RUN, *command])
        check(f"ferry-run {command}", seen[0] == code and text in seen[2], seen)
    seen = run([FERRY_RUN, "true"], FERRY_SHARE_HEAP="yes")
    check("FERRY_SHARE_HEAP=yes", seen[0] == 2 and "neither 0 nor 1" in seen[2], seen)
    seen = run([FERRY_RUN, "sh", "-c", "exit 7"])
    check("exit code of the program", seen[0] == 7, seen)


def moved():
    """ferry-run alone in a folder says where it looked."""
    with tempfile.TemporaryDirectory() as folder:
        alone = shutil.copy(FERRY_RUN, folder)
        seen = run([alone, "true"])
        check("no library", seen[0] == 127 and "there is no libferry-mpi.so" in seen[2], seen)
        os.mkdir(os.path.join(folder, "with blank"))
        shutil.copy(FERRY_RUN, os.path.join(folder, "with blank"))
        _, preload, _ = run([FERRY_RUN, "--print"])
        shutil.copy(preload.strip(), os.path.join(folder, "with blank"))
        seen = run([os.path.join(folder, "with blank", "ferry-run"), "true"])
        check("a blank in the path", seen[0] == 127 and "has a blank or a colon" in seen[2], seen)


def open_mpi():
    compiler = shutil.which("mpicc.openmpi")
    if compiler is None:
        print("without Open MPI: its programs were not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(
            [compiler, "-x", "c", "-", "-o", program], check=True, text=True,
            input="#include <mpi.h>\nint main(int a, char** b) { return MPI_Init(&a, &b); }\n")
        seen = run([FERRY_RUN, program])
        check("a program of Open MPI", seen[0] == 127 and "linked with Open MPI" in seen[2], seen)


for part in (tallies, apart, off, wrong_variable, tools, shared_heap, symbols, options, moved, open_mpi):
    part()
print("\n".join(faults) or "all as told")
sys.exit(1 if faults else 0)
