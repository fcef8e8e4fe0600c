# SPDX-License-Identifier: MIT
"""Starting, watching and ending the ranks of a fault test. Usage of every script here:
SCRIPT MPIEXEC WORKER. Exit code 0: as it must be; 1: not; 77: this machine cannot run the test."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

SKIP = 77
MPIEXEC = sys.argv[1]
WORKER = sys.argv[2]


class Job:
    """One mpiexec with its output, line by line as it comes."""

    def __init__(self, command, **environment):
        self.begin = time.monotonic()
        self.lines = []
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic() - self.begin, line.rstrip("\n")))

    def output(self):
        return "\n".join(line for _, line in list(self.lines))

    def wait_for(self, pattern, count, seconds):
        """The first count matches of pattern in the output, fewer when the seconds are over."""
        end = time.monotonic() + seconds
        found = []
        while time.monotonic() < end:
            ended = self.process.poll() is not None
            found = list(re.finditer(pattern, self.output(), re.MULTILINE))
            if len(found) >= count:
                break
            if ended and not self.reader.is_alive():
                break
            time.sleep(0.02)
        return found[:count]

    def pids(self, ranks):
        """Process ids of the ranks, which the worker prints."""
        found = self.wait_for(r"rank (\d+): pid (\d+)", ranks, 30)
        return {int(m.group(1)): int(m.group(2)) for m in found}

    def wait(self, seconds):
        """Exit code, or None when it had to be ended."""
        try:
            code = self.process.wait(seconds)
            self.reader.join(5)
            return code
        except subprocess.TimeoutExpired:
            self.end()
            return None

    def end(self):
        """Ends what this job started, and nothing else: mpiexec and all below it."""
        for pid in descendants(self.process.pid) + [self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.reader.join(5)


def descendants(pid):
    children = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry))
    found, left = [], [pid]
    while left:
        for child in children.get(left.pop(), []):
            found.append(child)
            left.append(child)
    return found


def ranks(count, *arguments, options=()):
    return [MPIEXEC, *options, "-n", str(count), WORKER, *arguments]


def check(condition, what, job=None):
    if condition:
        return
    print(f"FAILED: {what}")
    if job is not None:
        print(job.output())
        job.end()
    sys.exit(1)


def private_shm(size):
    """Go on in a mount namespace with a /dev/shm of its own; exits with SKIP where not permitted."""
    if os.environ.get("PRIVATE_SHM") == size:
        return
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: unshare -m is not permitted")
        sys.exit(SKIP)
    script = f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"'
    os.environ["PRIVATE_SHM"] = size
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, *sys.argv])
