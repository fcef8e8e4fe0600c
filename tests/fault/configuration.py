# SPDX-License-Identifier: MIT
"""A wrong variable is an error that names it, its value and what is allowed; a variable that differs
between ranks (case 85) is an error that names it."""

from common import MPIEXEC, WORKER, Job, check, ranks

WRONG = {
    "FERRY_ENGINE": ("warp", ["inline", "threads"]),
    "FERRY_SEGMENTS": ("paper", ["auto", "memfd", "shm"]),
    "FERRY_CMA": ("maybe", ["auto", "off"]),
    "FERRY_SLOT_BYTES": ("-3", ["0"]),
    "FERRY_TIMEOUT": ("soon", ["0"]),
    "FERRY_MAX_PACKET_BYTES": ("1", ["64"]),
}

for name, (value, allowed) in WRONG.items():
    job = Job(ranks(2, "once"), **{name: value})
    job.wait(30)
    errors = [line for line in job.output().splitlines() if name in line]
    check(errors, f"{name}={value}: the error names the variable", job)
    check(value in errors[0], f"{name}={value}: the error gives the value", job)
    for word in allowed:
        check(word in errors[0].split(value, 1)[1], f"{name}={value}: it says {word} is allowed", job)
    check("right" not in job.output(), f"{name}={value}: no rank goes on", job)
    print(errors[0])

one = [MPIEXEC, "-n", "1", "-env", "FERRY_SLOT_BYTES", "0", WORKER, "once"]
other = ["-n", "1", "-env", "FERRY_SLOT_BYTES", "512", WORKER, "once"]
job = Job([*one, ":", *other])
job.wait(30)
errors = [line for line in job.output().splitlines() if "FERRY_SLOT_BYTES" in line]
check(errors, "case 85: the error names the variable that differs", job)
check("wrong data" not in job.output(), "case 85: no wrong data", job)
print(errors[0])
