# SPDX-License-Identifier: MIT
"""scripts/count-tests tells what a run of Meson's tests came to. Argument: the source root."""

import json
import pathlib
import subprocess
import sys
import tempfile

GOOD = {"result": "OK", "stdout": "x\ndoctest-counts: 7 passed, 0 failed\n"}
PLAIN = {"result": "OK"}
# What meson wrote, the exit status of `meson test`, the last line and the status that must follow.
CASES = [
    ([GOOD, PLAIN, GOOD], 0, "tests: 15 passed, 0 failed", 0),
    ([GOOD, {"result": "FAIL", "stdout": "doctest-counts: 3 passed, 2 failed\n"}], 1,
     "tests: 10 passed, 2 failed", 1),
    ([PLAIN, {"result": "FAIL", "stdout": "no counts"}], 1, "tests: 1 passed, 1 failed", 1),
    ([GOOD, {"result": "TIMEOUT"}, {"result": "ERROR"}], 2, "tests: 7 passed, 2 failed", 1),
    # One rank crashed behind a good count; a program that counts failures and ends well.
    ([GOOD | {"result": "FAIL"}], 1, "tests: 7 passed, 1 failed", 1),
    ([{"result": "OK", "stdout": "doctest-counts: 3 passed, 1 failed\n"}], 0,
     "tests: 3 passed, 1 failed", 1),
    ([GOOD, {"result": "SKIP"}], 0, "tests: 7 passed, 0 failed", 0),
    ([{"result": "SKIP"}], 0, "tests: 0 passed, 1 failed", 1),
    ([GOOD], 1, "tests: 7 passed, 1 failed", 1),
    ([], 0, "tests: 0 passed, 1 failed", 1),
    (None, 1, "tests: 0 passed, 1 failed", 1),
]


def count(script, tests, status):
    """(last line, exit status) of the script on a log of these tests; None: there is no log."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "testlog.json"
        if tests is not None:
            log.write_text("".join(json.dumps(test) + "\n" for test in tests), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, script, log, str(status)], capture_output=True, text=True)
    return done.stdout.splitlines()[-1], done.returncode


def main():
    script = pathlib.Path(sys.argv[1]) / "scripts/count-tests"
    wrong = 0
    for tests, status, line, code in CASES:
        found = count(script, tests, status)
        if found != (line, code):
            wrong += 1
            print(f"{tests}, status {status}: expected {(line, code)}, found {found}")
    print(f"{wrong} of {len(CASES)} logs were counted wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
