# SPDX-License-Identifier: MIT
"""Case 104: 500 communicators in use with 64 open files per process."""

from common import Job, check, ranks

job = Job(["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", *ranks(2, "communicators", "500")])
check(job.wait(100) == 0, "the run ends well", job)
check(len(job.wait_for(r"^rank \d: right$", 2, 1)) == 2, "data right on every rank", job)
