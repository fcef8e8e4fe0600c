# SPDX-License-Identifier: MIT
"""Namespaces of the kernel for tests: whatever a test starts in them ends with it."""

import ctypes
import os
import signal
import subprocess
import sys

SKIP = 77
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
NEW_MOUNTS, NEW_PIDS, NEW_NETWORK = 0x20000, 0x20000000, 0x40000000


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def enter(kinds=NEW_MOUNTS | NEW_PIDS, shm="512m"):
    """Go on as the first process of new mount, pid and other namespaces, with a /dev/shm of its own;
    skips where that is not permitted."""
    if LIBC.unshare(kinds) != 0:
        skip("unshare is not permitted")
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        # The test runner ends a test that takes too long with this signal.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for command in ("mount --make-rprivate /", "mount -t proc proc /proc",
                    f"mount -t tmpfs -o size={shm} tmpfs /dev/shm"):
        if subprocess.run(command.split(), check=False).returncode != 0:
            sys.exit(1)
