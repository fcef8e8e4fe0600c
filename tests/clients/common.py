# SPDX-License-Identifier: MIT
"""What the scripts of this folder share. Each fetches a program from the sources of Debian, builds it
with MPICH in a folder of its own, runs it with and without ferry-run, compares the results, and
prints the time in collectives. Nothing of the programs is kept here.

Arguments of each script: mpiexec, ferry-run, the library of stopwatch.c. CLIENTS_FOLDER keeps what was
fetched and built for the next run."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
MPIEXEC, FERRY_RUN, STOPWATCH = (os.path.abspath(shutil.which(argument) or argument)
                                for argument in sys.argv[1:4])


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


@contextlib.contextmanager
def work_folder(name):
    kept = os.environ.get("CLIENTS_FOLDER")
    if kept:
        folder = pathlib.Path(kept) / name
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"there is no {program}")


def codename():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    if "\nID=debian" not in "\n" + text:
        skip("this is no Debian")
    return re.search(r"^VERSION_CODENAME=(\w+)", text, re.MULTILINE).group(1)


class Apt:
    """apt-get with lists of its own: nothing of the machine's configuration changes."""

    def __init__(self, folder):
        need("apt-get", "dpkg-deb")
        self.folder = folder
        lists = folder / "lists" / "partial"
        lists.mkdir(parents=True, exist_ok=True)
        name = codename()
        (folder / "sources.list").write_text(
            f"deb-src http://deb.debian.org/debian {name} main\n"
            f"deb http://deb.debian.org/debian {name} main\n", encoding="utf-8")
        listed = any(folder.glob("lists/*_Sources*")) and any(folder.glob("lists/*_Packages*"))
        if not listed and self("update") != 0:
            skip("the lists of Debian cannot be fetched; is there a network?")

    def __call__(self, *arguments):
        command = [
            "apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={self.folder}/sources.list",
            "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={self.folder}/lists",
            "-o", f"Dir::Cache={self.folder}", "-o", "APT::Sandbox::User=root",
            "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=300)
        if done.returncode != 0:
            print(done.stderr.strip())
        return done.returncode

    def source(self, package):
        """The unpacked folder of a source package, without Debian's changes."""
        archive = f"{package}_*.orig.tar.*"
        if not any(self.folder.glob(archive)):
            self("source", "--download-only", "--tar-only", package)
        found = [path for path in self.folder.glob(archive) if path.suffix != ".asc"]
        if not found:
            skip(f"the source of {package} cannot be fetched")
        into = self.folder / package
        if not into.exists():
            into.mkdir()
            subprocess.run(["tar", "xf", found[0], "-C", into, "--strip-components=1"], check=True)
        return into

    def binary(self, *packages):
        """The files of binary packages, in a folder; nothing is installed."""
        into = self.folder / "root"
        for package in packages:
            if any(self.folder.glob(f"{package}_*.deb")):
                continue
            if self("download", package) != 0:
                skip(f"the package {package} cannot be fetched")
            subprocess.run(["dpkg-deb", "-x", next(self.folder.glob(f"{package}_*.deb")), into],
                           check=True)
        return into


def build(command, folder, log="build.log", **environment):
    print("building:", " ".join(map(str, command[:3])), flush=True)
    with open(pathlib.Path(folder) / log, "a", encoding="utf-8") as out:
        done = subprocess.run(command, cwd=folder, env=os.environ | environment, stdout=out,
                              stderr=subprocess.STDOUT, timeout=1500)
    if done.returncode != 0:
        text = (pathlib.Path(folder) / log).read_text(encoding="utf-8", errors="replace")
        sys.exit("\n".join(text.splitlines()[-20:]) + "\nthe build failed")


class Run:
    """One run of a program: output, seconds, and what the stopwatch saw in collectives."""

    def __init__(self, ranks, command, folder, ferry, timeout=300, **settings):
        environment = {key: text for key, text in os.environ.items()
                       if not key.startswith("FERRY") and key != "MALLOC_PERTURB_"}
        environment |= {"FERRY_VERBOSE": "1"} | settings
        front = [FERRY_RUN] if ferry else []
        launch = [MPIEXEC, "-n", str(ranks), "env", f"LD_PRELOAD={STOPWATCH}"]
        start = time.monotonic()
        done = subprocess.run([*launch, *front, *map(str, command)], cwd=folder, env=environment,
                              text=True, capture_output=True, timeout=timeout, errors="replace")
        self.seconds = time.monotonic() - start
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.calls = {kind: (int(count), float(spent)) for kind, count, spent in re.findall(
            r"stopwatch: (\w+) (\d+) calls ([\d.]+) s", self.err)}
        self.taken = sum(map(int, re.findall(r"ferry: .*?: MPI_\w+ (\d+) taken", self.err)))


def table(rows):
    """rows: name, run without, run with Ferry."""
    print(f"{'':24} {'calls':>8} {'MPICH s':>10} {'Ferry s':>10} {'ratio':>7}")
    for name, without, with_ferry in rows:
        for kind, (calls, spent) in without.calls.items():
            ours = with_ferry.calls.get(kind, (0, 0.0))[1]
            if calls:
                print(f"{name + ' ' + kind:24} {calls:8} {spent:10.3f} {ours:10.3f} "
                      f"{spent / max(ours, 1e-9):7.1f}")
        print(f"{name + ' in all':24} {'':8} {without.seconds:10.1f} {with_ferry.seconds:10.1f}")


def finish(faults):
    print("\n".join(faults) or "equal results")
    sys.exit(1 if faults else 0)
