# SPDX-License-Identifier: MIT
"""A Slurm of four nodes on this machine, for the time of a test: a private munge, slurmctld and
slurmd n1 to n4, all in one folder, with ports of their own; nothing of the system's configuration is
read or written. Everything runs in a pid namespace, whose first process the test is: what jobs leave
behind becomes its child and is found, and nothing outlives it. /dev/shm is private as well."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from namespaces import skip

NODES = ("n1", "n2", "n3", "n4")
CPUS = 8  # of a node, as Slurm is told
GPUS = 4  # of a node, made of device files that lead nowhere

CONFIGURATION = """
ClusterName=ferry-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=2
MpiDefault=none
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[4]}] CPUs={cpus} Gres=gpu:{gpus}
PartitionName=p Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def require():
    if os.geteuid() != 0:
        skip("starting Slurm daemons takes root")
    for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scancel", "sinfo"):
        if shutil.which(name) is None:
            skip(f"{name} is not installed (packages slurm-wlm and munge)")


def free_ports(count):
    """The first of `count` neighbouring TCP ports that nobody uses."""
    for first in range(16800 + os.getpid() % 1000, 30000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no free ports")


def children_of(pid):
    """Process ids below pid, those that lost their parent included: they become children of ours."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                state, parent = stat.read().rsplit(")", 1)[1].split()[:2]
        except (OSError, IndexError, ValueError):
            continue
        if state != "Z":
            parents.setdefault(int(parent), []).append(int(entry))
    found, left = [], [pid]
    while left:
        below = parents.get(left.pop(), [])
        found += below
        left += below
    return found


class Cluster:
    def __init__(self):
        self.daemons = []
        self.own = set()  # processes of the daemons
        self.folder = tempfile.mkdtemp(prefix="ferry-slurm-")
        os.chmod(self.folder, 0o755)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("SLURM", "PMI", "OMPI", "FERRY"))}
        self.environment["SLURM_CONF"] = f"{self.folder}/slurm.conf"

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _start(self):
        folder = self.folder
        first = free_ports(5)
        os.mkdir(f"{folder}/state")
        with open(f"{folder}/munge.key", "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(f"{folder}/munge.key", 0o400)
        for gpu in range(GPUS):
            os.mknod(f"{folder}/gpu{gpu}", 0o20666, os.makedev(1, 3))
        with open(f"{folder}/gres.conf", "w", encoding="utf-8") as gres:
            gres.write(f"Name=gpu Count={GPUS} File={folder}/gpu[0-{GPUS - 1}]\n")
        with open(f"{folder}/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(
                folder=folder, host=socket.gethostname(), cpus=CPUS, gpus=GPUS,
                ports=list(range(first, first + 5))))
        self._daemon("munged", "--foreground", "--force", f"--key-file={folder}/munge.key",
                     f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
                     f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
        self._until(lambda: os.path.exists(f"{folder}/munge.socket"), 10, "munge opens its socket")
        self._daemon("slurmctld", "-D")
        for node in NODES:
            os.mkdir(f"{folder}/spool.{node}")
            self._daemon("slurmd", "-D", "-N", node)
        self._until(lambda: self.run("sinfo", "-hN", "-o", "%T")[1].split() == ["idle"] * 4, 30,
                    "four nodes are idle")
        self.own = set(children_of(os.getpid()))

    def _daemon(self, *command):
        log = open(f"{self.folder}/daemons.log", "ab")
        self.daemons.append(subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        log.close()

    def _until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                print(f"FAILED: {what}\n{self.logs()}")
                sys.exit(1)
            time.sleep(0.1)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(f"{self.folder}/{name}", encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return text

    def run(self, *command, seconds=60):
        """Exit code (None when time was up) and everything the command printed."""
        try:
            done = subprocess.run(
                command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                timeout=seconds, check=False)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b"").decode(errors="replace")

    def submit(self, script, *options):
        """Number of a batch job; its output goes to JOB.out, of arrays to JOB_TASK.out."""
        path = f"{self.folder}/job.sh"
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        output = "%A_%a.out" if any(o.startswith("--array") for o in options) else "%j.out"
        code, text = self.run("sbatch", "--parsable", "-o", f"{self.folder}/{output}", *options, path)
        if code != 0:
            print(f"FAILED: sbatch\n{text}")
            sys.exit(1)
        return text.strip()

    def output(self, name):
        try:
            with open(f"{self.folder}/{name}.out", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def ended(self, job, seconds=60):
        """Wait until no part of the job is left in the queue; false when time was up."""
        end = time.monotonic() + seconds
        while self.run("squeue", "-h", "-j", job)[1].strip():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def jobs_left(self):
        """Processes that belong to no daemon: ranks, launchers, steps."""
        return [pid for pid in children_of(os.getpid()) if pid not in self.own]

    def stop(self):
        for pid in self.jobs_left() if self.own else []:
            end_process(pid)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in children_of(os.getpid()):
            end_process(pid)
        reap()
        shutil.rmtree(self.folder, ignore_errors=True)


def reap():
    """Children that we got from others: nobody else asks for their exit codes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def end_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
