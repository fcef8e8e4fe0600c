# SPDX-License-Identifier: MIT
"""doc/sdma-checklist.md holds rows 1 to 77, each once and in order, each with a standing, and every
test that it names is there: a case of a test program, a test of Meson, or a planted fault of the
protocol models. Argument: the source root."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "checks"))
import common

PAGE = "doc/sdma-checklist.md"
ROWS = 77
STANDINGS = ("shown", "partly", "cannot occur", "not there yet", "open")
CASE = re.compile(r'TEST_CASE(?:_\w+)?\(\s*"((?:[^"\\]|\\.)*)"')
FAULT = re.compile(r'^    \("(\w+)", "(\w+)", "(?:row|case) \d+"', re.MULTILINE)


def tests_of(root):
    """The names of all tests, each on a line of its own."""
    names = []
    for folder in ("tests", "apps"):
        for path in sorted((root / folder).rglob("*.cpp")):
            names += CASE.findall(path.read_text(encoding="utf-8"))
        for path in sorted((root / folder).rglob("meson.build")):
            names += re.findall(r"test\('([^']*)'", path.read_text(encoding="utf-8"))
    runner = root / "tests/spin/run.py"
    if runner.is_file():
        names += [": ".join(found) for found in FAULT.findall(runner.read_text(encoding="utf-8"))]
    return names


def check_row(cells, names):
    """What is wrong with the cells of one row."""
    if len(cells) != 4 or not all(cells):
        yield "a row has number, source, what went wrong, and how Ferry stands"
        return
    standing = cells[3].partition(":")[0]
    quoted = re.findall(r"`([^`]*)`", cells[3])
    if standing not in STANDINGS:
        yield f"'{standing}' is no standing"
    if standing in ("shown", "partly") and not quoted:
        yield "no test is named"
    for name in quoted:
        if not any(known.startswith(name) for known in names):
            yield f"no test is called '{name}'"


def check(root):
    root = pathlib.Path(root)
    names = tests_of(root)
    faults, numbers, last = [], [], 1
    for last, line in enumerate((root / PAGE).read_text(encoding="utf-8").splitlines(), 1):
        if not re.match(r"\| \d+ \|", line):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers.append(int(cells[0]))
        if numbers[-1] != len(numbers):
            faults.append(f"{PAGE}:{last}: row {cells[0]} in place of {len(numbers)}")
        faults += [f"{PAGE}:{last}: {text}" for text in check_row(cells, names)]
    if len(numbers) != ROWS:
        faults.append(f"{PAGE}:{last}: {len(numbers)} rows of {ROWS}")
    return faults


def page(changes):
    """A page with all rows, in which some are replaced."""
    rows = {n: f"| {n} | A#1 | x | shown: `a case`, `ring: WRAP` |" for n in range(1, ROWS + 1)}
    rows.update(changes)
    return "\n".join(row for row in rows.values() if row) + "\n"


def tree(changes):
    return {PAGE: page(changes), "tests/a_test.cpp": 'TEST_CASE(\n    "a case (row 1)") {',
            "tests/spin/run.py": '    ("ring", "WRAP", "row 15", "", "x"),\n'}


PLANTS = [
    (tree({}), []),
    (tree({3: "| 3 | A#1 | x | shown: `another case` |"}), [f"{PAGE}:3"]),
    (tree({3: "| 3 | A#1 | x | shown: `ring: OTHER` |"}), [f"{PAGE}:3"]),
    (tree({4: "| 4 | A#1 | x | shown: somewhere |"}), [f"{PAGE}:4"]),
    (tree({5: "| 5 | A#1 | x | fine: `a case` |"}), [f"{PAGE}:5"]),
    (tree({6: "| 6 | A#1 | not there yet: no engine |"}), [f"{PAGE}:6"]),
    (tree({77: None}), [f"{PAGE}:76"]),
    (tree({77: "| 76 | A#1 | x | shown: `a case` |"}), [f"{PAGE}:77"]),
]

if __name__ == "__main__":
    common.run(check, PLANTS)
