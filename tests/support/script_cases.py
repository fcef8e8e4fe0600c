# SPDX-License-Identifier: MIT
"""Runs the test_* functions of a script, one after the other, and counts them."""

import subprocess


def run(names):
    """names: the script's globals(). The exit status: 1 when a case failed."""
    tests = {name: test for name, test in names.items() if name.startswith("test_")}
    failed = 0
    for name, test in tests.items():
        try:
            test()
        except (AssertionError, ValueError, KeyError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    print(f"doctest-counts: {len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
