# SPDX-License-Identifier: MIT
"""FERRY_TIMEOUT: a rank that never calls gives the others an error that names collective and peer."""

import re

from common import Job, check, ranks

job = Job(ranks(3, "absent", "20", options=["-disable-auto-cleanup"]), FERRY_TIMEOUT="2")
found = job.wait_for(r"^rank [01]: error of class \d+: .*$", 2, 12)
check(len(found) == 2, "an error on both ranks that called", job)
for match in found:
    text = match.group(0).split(": ", 2)[2]
    check("alltoall" in text, f"error names the collective: {text}", job)
first = [m.group(0) for m in found if re.search(r"rank 2", m.group(0).split(" of 3", 1)[-1])]
check(first, "an error names the rank that stayed away", job)
print(first[0])
job.end()
