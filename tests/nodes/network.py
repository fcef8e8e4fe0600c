# SPDX-License-Identifier: MIT
"""Nodes that share nothing but a network, on this machine: each is a process with network, mount,
pid, ipc and uts namespaces and a /dev/shm of its own, on one bridge. All of it goes when the test
goes."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import namespaces

BRIDGE = "ferry0"


def require():
    if os.geteuid() != 0:
        namespaces.skip("network namespaces take root")
    for name in ("ip", "nsenter", "unshare", "mount"):
        if shutil.which(name) is None:
            namespaces.skip(f"{name} is not installed")


class Network:
    """Call inside of namespaces.enter(... | NEW_NETWORK)."""

    def __init__(self, nodes, mpiexec):
        self.mpiexec = mpiexec
        self.names = [f"node{i}" for i in range(nodes)]
        self.folder = tempfile.mkdtemp(prefix="ferry-nodes-")
        ip(f"link add {BRIDGE} type bridge")
        ip(f"addr add 10.77.0.254/24 dev {BRIDGE}")
        ip(f"link set {BRIDGE} up")
        ip("link set lo up")
        self.holders = [self._make(i) for i in range(nodes)]
        self._write_launcher()

    def _make(self, index):
        """A process that holds the namespaces of one node, and its wire."""
        script = (f"hostname node{index}; mount -t tmpfs -o size=1g tmpfs /dev/shm; "
                  "echo $PPID ready; exec sleep infinity")
        holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
             "--mount-proc", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        if "ready" not in holder.stdout.readline():
            namespaces.skip("unshare is not permitted")
        with open(f"/proc/{holder.pid}/task/{holder.pid}/children", encoding="utf-8") as children:
            inside = children.read().split()[0]
        ip(f"link add wire{index} type veth peer name eth0 netns {inside}")
        ip(f"link set wire{index} master {BRIDGE} up")
        enter = ["nsenter", "-t", inside, "-n", "ip"]
        for arguments in (f"addr add 10.77.0.{index + 1}/24 dev eth0", "link set eth0 up",
                          "link set lo up"):
            subprocess.run(enter + arguments.split(), check=True)
        return holder, inside

    def _write_launcher(self):
        """What hydra calls in place of rsh: [options] host command..."""
        self.launcher = f"{self.folder}/rsh"
        cases = "".join(f"{name}) pid={inside};;\n"
                        for name, (_, inside) in zip(self.names, self.holders))
        with open(self.launcher, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\n'
                       f'case "$1" in {cases} esac\nshift\n'
                       'exec nsenter -t "$pid" -n -m -p -i -u sh -c "$*"\n')
        os.chmod(self.launcher, stat.S_IRWXU)

    def bytes_moved(self):
        """On all wires, both directions."""
        shown = subprocess.run(["ip", "-s", "-j", "link"], check=True, stdout=subprocess.PIPE)
        return sum(link["stats64"][way]["bytes"] for link in json.loads(shown.stdout)
                   if link["ifname"].startswith("wire") for way in ("rx", "tx"))

    def command(self, ranks_per_node, *program):
        ranks = ranks_per_node * len(self.names)
        return [self.mpiexec, "-launcher", "rsh", "-launcher-exec", self.launcher, "-hosts",
                ",".join(self.names), "-iface", BRIDGE, "-ppn", str(ranks_per_node), "-n",
                str(ranks), *program]

    @staticmethod
    def end(process, patience=3):
        """Ends a launcher, whose ranks may hang in MPI_Finalize; true if it ended by itself."""
        try:
            process.wait(patience)
            return True
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its ranks
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return False

    def stop(self):
        for index in range(len(self.names)):
            ip(f"link del wire{index}")
        ip(f"link del {BRIDGE}")
        for holder, _ in self.holders:
            holder.kill()
            holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def ip(arguments):
    subprocess.run(["ip", *arguments.split()], check=True)
