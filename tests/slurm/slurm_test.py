# SPDX-License-Identifier: MIT
"""Ferry under a real Slurm: jobs as users start them, wrong starts, a job that is cancelled, and
what is left afterwards. Arguments: MPIEXEC WORKER."""

import os
import pathlib
import re
import shutil
import sys
import time

from cluster import Cluster, require
from namespaces import enter

MPIEXEC = sys.argv[1]
WORKER = os.path.abspath(sys.argv[2])
MOST_SECONDS_TO_END = 20
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"
BEGIN = time.monotonic()
failed = 0


def report(name, faults, output):
    global failed
    print(f"{'FAILED' if faults else 'ok'}: {name} ({time.monotonic() - BEGIN:.0f} s)", flush=True)
    if faults:
        failed += 1
        print("\n".join(f"  {fault}" for fault in faults) + f"\n{output}")


def lines_of_ferry(output):
    return [line for line in output.splitlines() if line.startswith("ferry:")]


def right_ranks(output):
    return sorted(int(rank) for rank in re.findall(r"^rank (\d+): right$", output, re.MULTILINE))


def faults_of(output, ranks, code=0):
    if code != 0:
        yield f"exit code {code}"
    if right_ranks(output) != list(range(ranks)):
        yield f"data was right on ranks {right_ranks(output)}"
    for line in lines_of_ferry(output):
        yield f"unasked: {line}"


def check_srun(cluster):
    for options in ("-N1 -n4", "-N4 -n4", "-N2 --ntasks-per-node=2", "-N2 -n3 -m plane=2"):
        code, output = cluster.run("srun", "--mpi=pmi2", *options.split(), WORKER, "once")
        ranks = 3 if "-n3" in options else 4
        report(f"srun --mpi=pmi2 {options}", list(faults_of(output, ranks, code)), output)


def check_sbatch(cluster):
    for options, program in (("-N1 -n8", f"{MPIEXEC} -n 8"), ("-N2 --ntasks-per-node=2", MPIEXEC)):
        job = cluster.submit(f"exec {program} {WORKER} once", *options.split())
        faults = [] if cluster.ended(job) else ["does not end"]
        output = cluster.output(job)
        ranks = 8 if "-n8" in options else 4
        report(f"sbatch {options} with mpiexec", faults + list(faults_of(output, ranks)), output)


def check_job_scripts(cluster):
    """Those of examples/slurm, on as many cores and GPUs as these nodes have."""
    with_gpus = "--ntasks-per-node=2 --gpus-per-node=4 --cpus-per-task=1"
    for name, ranks, options in (
            ("cpu", 4, "--ntasks-per-node=2"), ("amd", 2, with_gpus), ("nvidia", 2, with_gpus)):
        script = str(EXAMPLES / f"{name}.sh")
        code, job = cluster.run("sbatch", "--parsable", "-o", f"{cluster.folder}/%j.out",
                                *options.split(), script, WORKER, "once")
        job = job.strip()
        faults = [] if code == 0 and cluster.ended(job) else ["does not end"]
        output = cluster.output(job)
        report(f"job script {name}.sh", faults + list(faults_of(output, ranks)), output)


def check_array(cluster):
    """Two jobs of an array on one node, at the same time."""
    job = cluster.submit(
        f'date +"begin %s.%N"; {MPIEXEC} -n 4 {WORKER} loop 3; date +"end %s.%N"',
        "--array=0-1", "-N1", "-n4", "-w", "n1")
    faults = [] if cluster.ended(job) else ["does not end"]
    outputs = [cluster.output(f"{job}_{task}") for task in (0, 1)]
    for output in outputs:
        faults += faults_of(output, 4)
    begins = [float(t) for output in outputs for t in re.findall(r"begin (\S+)", output)]
    ends = [float(t) for output in outputs for t in re.findall(r"end (\S+)", output)]
    if len(begins) == len(ends) == 2 and max(begins) > min(ends):
        faults.append("the jobs did not run at the same time")
    report("an array of two jobs at once", faults, "\n".join(outputs))


def check_scancel(cluster):
    for launcher, segments in ((f"{MPIEXEC} -n 4", "auto"), ("srun --mpi=pmi2", "shm")):
        job = cluster.submit(
            f"export FERRY_SEGMENTS={segments} UCX_TLS=tcp,self; {launcher} {WORKER} loop 60",
            "-N2", "--ntasks-per-node=2")
        end = time.monotonic() + 30
        while len(re.findall(r"pid \d+", cluster.output(job))) < 4 and time.monotonic() < end:
            time.sleep(0.1)
        started = re.findall(r"pid (\d+)", cluster.output(job))
        faults = [] if len(started) == 4 else ["does not start"]
        time.sleep(0.5)
        code, text = cluster.run("scancel", job)
        if code != 0:
            faults.append(f"scancel: {text}")
        begin = time.monotonic()
        if not cluster.ended(job, MOST_SECONDS_TO_END):
            faults.append("does not end")
        while cluster.jobs_left() and time.monotonic() < begin + MOST_SECONDS_TO_END:
            time.sleep(0.1)
        left = set(map(int, started)) & set(cluster.jobs_left())
        faults += [f"rank {pid} is left" for pid in left]
        output = cluster.output(job)
        faults += [f"unasked: {line}" for line in lines_of_ferry(output)]
        report(f"scancel of {launcher.split()[0]}, segments {segments}", faults, output)


def check_wrong_starts(cluster):
    """Each is answered by one line that names the sign and the command to use."""
    node = "-N1 -n2"
    wrong = [
        ("srun without --mpi", f"srun {node}", "SLURM_STEP_NUM_TASKS=2", "--mpi=pmi2"),
        ("srun --mpi=pmix", f"srun --mpi=pmix {node}", "PMIX_RANK", "--mpi=pmi2"),
        ("mpiexec of Open MPI", "mpiexec.openmpi --allow-run-as-root --oversubscribe -n 2",
         "OMPI_COMM_WORLD_SIZE=2", "mpiexec.mpich"),
        ("a script that loses PMI_FD", f"{MPIEXEC} -n 2 env -u PMI_FD", "PMI_SIZE=2", "pass on"),
        ("cores hidden", f"srun --mpi=pmi2 --cpu-bind=map_cpu:0 {node}",
         "SLURM_CPU_BIND=quiet,map_cpu:0", "--cpu-bind=cores"),
        ("GPUs hidden", f"srun --mpi=pmi2 --gpus-per-task=1 {node}", "SLURMD_TRES_BIND=gpu:per_task:1",
         "--gpu-bind=none"),
    ]
    available = cluster.run("srun", "--mpi=list")[1]
    for name, command, sign, remedy in wrong:
        program = command.split()[0]
        missing = shutil.which(program) is None or ("pmix" in command and "pmix" not in available)
        if missing or ("cores" in name and len(os.sched_getaffinity(0)) < 2):
            print(f"left out, not possible here: {name}")
            continue
        code, output = cluster.run(*command.split(), WORKER, "once")
        check_one_line(name, code, output, sign, remedy)
    job = cluster.submit(f"{WORKER} once", "-N1", "-n4")
    cluster.ended(job)
    check_one_line("a job script without launcher", 0, cluster.output(job), "SLURM_NTASKS=4",
                   "mpiexec.mpich ./program")


def check_one_line(name, code, output, sign, remedy):
    lines = lines_of_ferry(output)
    faults = [] if code == 0 else [f"exit code {code}"]
    if len(lines) != 1 or sign not in lines[0] or remedy not in lines[0]:
        faults.append(f"not one line with {sign} and {remedy}: {lines}")
    report(f"wrong start, {name}", faults, output)
    if lines:
        print(f"  {lines[0]}")


def main():
    require()
    enter()
    with Cluster() as cluster:
        temporary = f"{cluster.folder}/temporary"
        os.mkdir(temporary)
        cluster.environment["TMPDIR"] = temporary
        for case in (check_srun, check_sbatch, check_job_scripts, check_array, check_wrong_starts, check_scancel):
            case(cluster)
        # Files of the MPI below are its own.
        left = [f for f in os.listdir("/dev/shm") if not f.startswith(("mpich_", "ucx_"))]
        left += os.listdir(temporary) + cluster.jobs_left()
        report("nothing is left", [f"left: {one}" for one in left], "")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
