# SPDX-License-Identifier: MIT
"""doc/sdma-checklist.md and doc/field-cases.md hold their rows, each once and in order, each with a
standing, and every test that they name is there: a case of a test program, a test of Meson, or a
planted fault of the protocol models. Argument: the source root."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "checks"))
import common

PAGE = "doc/sdma-checklist.md"
ROWS = 77
FIELD = "doc/field-cases.md"
FIELD_ROWS = [1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 23, 25, 26, 28, 29, 31, 32, 33,
              34, 35, 36, 37, 39, 40, 41, 42, 43, 44, 46, 47, 50, 51, 53, 54, 55, 58, 59, 60, 62, 63, 65, 66,
              68]
PAGES = {PAGE: list(range(1, ROWS + 1)), FIELD: FIELD_ROWS}
STANDINGS = ("shown", "partly", "cannot occur", "not there yet", "open")
CASE = re.compile(r'TEST_CASE(?:_\w+)?\(\s*"((?:[^"\\]|\\.)*)"')
LOOP = re.compile(r"foreach (\w+)(?:, \w+)? : (\w+|\[[^\]]*\])\n(.*?)endforeach", re.DOTALL)
FAULT = re.compile(r'^    \("(\w+)", "(\w+)", "(?:row|case) \d+"', re.MULTILINE)


def tests_of_loops(text):
    """Names that Meson makes in a loop: a text and a key of a dictionary, or an entry of a list."""
    for name, source, body in re.findall(LOOP, text):
        if source[0] != "[":
            found = re.search(rf"^{source} = \{{(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
            keys = re.findall(r"^  '([^']+)':", found.group(1), re.MULTILINE) if found else []
        else:
            keys = re.findall(r"'([^']+)'", source)
        for start in re.findall(rf"test\('([^'@]*)(?:' \+ {name}\b|@0@[^']*'\.format\({name}\b)", body):
            yield from (start + key for key in keys)


def tests_of(root):
    """The names of all tests, each on a line of its own."""
    names = []
    for folder in ("tests", "apps"):
        for path in sorted((root / folder).rglob("*.cpp")):
            names += CASE.findall(path.read_text(encoding="utf-8"))
        for path in sorted((root / folder).rglob("meson.build")):
            text = path.read_text(encoding="utf-8")
            names += re.findall(r"test\('([^']*)'", text) + list(tests_of_loops(text))
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


def check_page(root, page, rows, names):
    faults, numbers, last = [], [], 1
    for last, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), 1):
        if not re.match(r"\| \d+ \|", line):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers.append(int(cells[0]))
        wanted = rows[len(numbers) - 1] if len(numbers) <= len(rows) else "none"
        if numbers[-1] != wanted:
            faults.append(f"{page}:{last}: row {cells[0]} in place of {wanted}")
        faults += [f"{page}:{last}: {text}" for text in check_row(cells, names)]
    if len(numbers) != len(rows):
        faults.append(f"{page}:{last}: {len(numbers)} rows of {len(rows)}")
    return faults


def check(root):
    root = pathlib.Path(root)
    names = tests_of(root)
    return [text for page, rows in PAGES.items() for text in check_page(root, page, rows, names)]


def page(changes, numbers=PAGES[PAGE]):
    """A page with all rows, in which some are replaced."""
    rows = {n: f"| {n} | A#1 | x | shown: `a case`, `ring: WRAP` |" for n in numbers}
    rows.update(changes)
    return "\n".join(row for row in rows.values() if row) + "\n"


def tree(changes, field=None):
    return {PAGE: page(changes), FIELD: page(field or {}, FIELD_ROWS), "tests/meson.build": MESON, "tests/a_test.cpp": 'TEST_CASE(\n    "a case (row 1)") {',
            "tests/spin/run.py": '    ("ring", "WRAP", "row 15", "", "x"),\n'}


MESON = """jobs = {
  'one': {},
}
foreach name, settings : jobs
  test('job, ' + name, x)
endforeach
foreach name : ['kill', 'stop']
  test('fault, @0@, 2'.format(name), x)
endforeach
"""
PLANTS = [
    (tree({}), []),
    (tree({3: "| 3 | A#1 | x | shown: `another case` |"}), [f"{PAGE}:3"]),
    (tree({3: "| 3 | A#1 | x | shown: `ring: OTHER` |"}), [f"{PAGE}:3"]),
    (tree({4: "| 4 | A#1 | x | shown: somewhere |"}), [f"{PAGE}:4"]),
    (tree({5: "| 5 | A#1 | x | fine: `a case` |"}), [f"{PAGE}:5"]),
    (tree({6: "| 6 | A#1 | not there yet: no engine |"}), [f"{PAGE}:6"]),
    (tree({77: None}), [f"{PAGE}:76"]),
    (tree({}, {1: "| 1 | A | x | shown: `job, one`, `fault, stop` |"}), []),
    (tree({}, {1: "| 1 | A | x | shown: `job, two` |"}), [f"{FIELD}:1"]),
    (tree({}, {2: "| 8 | A | x | shown: `a case` |"}), [f"{FIELD}:2"]),
    (tree({}, {68: None}), [f"{FIELD}:{len(FIELD_ROWS) - 1}"]),
    (tree({77: "| 76 | A#1 | x | shown: `a case` |"}), [f"{PAGE}:77"]),
]

if __name__ == "__main__":
    common.run(check, PLANTS)
