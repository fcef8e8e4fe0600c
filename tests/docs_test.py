# SPDX-License-Identifier: MIT
"""What README and doc/ claim is there: links and headings, files, names of the interface and of the
environment, code shown from examples, errors (each in the page is in the code and the other way
round), and the figures of doc/limits.md. Argument: the source root."""

import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "checks"))
import common

FOLDERS = "apps|collectives|device|doc|examples|include|lib|packaging|scripts|tests"
ERRORS = "doc/errors.md"
LIMITS = "doc/limits.md"
TABLE = "collectives/table.def"
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
GAP = "\u2026"


def pages_of(root):
    found = [p for p in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md") if (root / p).exists()]
    return found + sorted(p.relative_to(root).as_posix() for p in root.glob("doc/*.md"))


def read(root, path):
    file = root / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def sources(root, folders):
    return [read(root, path) for path in common.files(root, folders)]


def anchors(text):
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def check_links(root, page, number, line):
    for target in re.findall(r"\]\(([^)\s]+)\)", line):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (root / page).parent / name if name else root / page
        if not file.exists():
            yield f"{page}:{number}: no {target}"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page}:{number}: no heading {target}"


def check_names(root, page, number, line, known):
    without_links = re.sub(r"\]\([^)]*\)", "]", line)
    for path in re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w", without_links):
        if not (root / path).exists() and path != "lib/interpose":
            yield f"{page}:{number}: no file {path}"
    for name in re.findall(r"\b(?:ferry_[a-z_]+|FERRY_[A-Z_]+[A-Z])\b", line):
        if name not in known:
            yield f"{page}:{number}: nothing is called {name}"


def check_code(root, page, text):
    """A fence behind <!-- from FILE --> is in FILE, line by line."""
    shown = re.finditer(r"<!-- from (\S+) -->\n```\w+\n(.*?)```", text, re.DOTALL)
    for match in shown:
        if match.group(2) not in read(root, match.group(1)):
            number = text[:match.start()].count("\n") + 1
            yield f"{page}:{number}: this is not in {match.group(1)}"


def joined(literals):
    """Neighbouring C++ literals as one text, with a gap for each {...}."""
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
    return re.sub(r"\{[^}]*\}", GAP, text)


def fits(pattern, text):
    """The parts of pattern between gaps stand in text, in their order."""
    at = 0
    for part in (p for p in pattern.split(GAP) if p.strip()):
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def check_errors(root):
    page = read(root, ERRORS)
    code = sources(root, ("lib", "include", "collectives"))
    texts = [joined(found) for text in code for found in re.findall(LITERALS, text)]
    causes = []
    column = None
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if "cause" in cells or not cells:
            column = cells.index("cause") if cells else None
            continue
        if column is None:
            continue
        for cause in re.findall(r"`([^`]+)`", cells[column]):
            causes.append(cause)
            if not any(fits(cause, text) for text in texts):
                yield f"{ERRORS}:{number}: no code says '{cause}'"
    thrown = rf"(?:ErrorKind::\w+,\s*(?:fmt::format\(\s*)?|bad_request\(\s*[^,]+,[^,]+,\s*){LITERALS}"
    said = sorted({joined(found) for text in code for found in re.findall(thrown, text)})
    for text in said:
        if not any(fits(text, cause) for cause in causes):
            yield f"{ERRORS}:1: the page lacks '{text}'"


def check_limits(root):
    """Rows 'ranks | slot limit | block of one rank | all ranks' follow from the built-in table."""
    values = dict(re.findall(r"FERRY_ENTRY\(\s*(\w+), (\d+),", read(root, TABLE)))
    if not values:
        return
    most, budget, depth = (int(values[n]) for n in ("slot_bytes", "slot_budget", "slot_depth"))
    for number, line in enumerate(read(root, LIMITS).splitlines(), 1):
        row = re.fullmatch(r"\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", line)
        if row is None:
            continue
        ranks, *stated = (int(cell.replace(",", "")) for cell in row.groups())
        limit = min(most, max(budget // (depth * ranks) // 64 * 64, 64) - 16)
        stride = (16 + limit + 63) // 64 * 64
        block = 448 + 6 * ranks * 64 + ranks * depth * stride
        pages = (block + 4095) // 4096 * 4096
        if stated != [limit, pages, ranks * pages]:
            yield f"{LIMITS}:{number}: should be {limit}, {pages}, {ranks * pages}"


def check(root):
    root = pathlib.Path(root)
    known = set()
    for text in sources(root, ("include", "device", "lib/config")) + [read(root, "scripts/test")]:
        known |= set(re.findall(r"\w+", text))
    faults = []
    for page in pages_of(root):
        text = read(root, page)
        faults += check_code(root, page, text)
        for number, line in enumerate(text.splitlines(), 1):
            faults += check_links(root, page, number, line)
            faults += check_names(root, page, number, line, known)
    return list(itertools.chain(faults, check_errors(root), check_limits(root)))


PLANTS = [
    ({"README.md": "[a](doc/a.md) [b](doc/a.md#two-words) [c](#top)\n# Top\n",
      "doc/a.md": "## Two `words`\n"}, []),
    ({"README.md": "\n[a](doc/a.md)\n"}, ["README.md:2"]),
    ({"README.md": "[b](doc/a.md#two)\n", "doc/a.md": "## Two words\n"}, ["README.md:1"]),
    ({"doc/a.md": "`lib/x.cpp`\n`lib/y.cpp`\n", "lib/x.cpp": ""}, ["doc/a.md:2"]),
    ({"doc/a.md": "`ferry_send`\n`FERRY_NEW`\n", "include/ferry/ferry.h": "int ferry_send();"},
     ["doc/a.md:2"]),
    ({"doc/a.md": "<!-- from examples/e.c -->\n```c\n  int a;\n```\n", "examples/e.c": "  int a;\n"},
     []),
    ({"doc/a.md": "<!-- from examples/e.c -->\n```c\n  int b;\n```\n", "examples/e.c": "  int a;\n"},
     ["doc/a.md:1"]),
    ({ERRORS: "| class | cause |\n|---|---|\n| X | `the … is bad` |\n",
      "lib/e.cpp": 'throw Failure(ErrorKind::root, fmt::format("the {} "\n  "is bad", 1), "fix");'}, []),
    ({ERRORS: "| class | cause |\n|---|---|\n| X | `the … is worse` |\n",
      "lib/e.cpp": 'throw Failure(ErrorKind::root, fmt::format("the {} is bad", 1), "fix");'},
     [f"{ERRORS}:1", f"{ERRORS}:3"]),
    ({TABLE: "FERRY_ENTRY(slot_bytes, 4064, 1)\nFERRY_ENTRY(\n    slot_budget, 131072, 0)\n"
             "FERRY_ENTRY(slot_depth, 8, 0)\n",
      LIMITS: "| 2 | 4064 | 69,632 | 139,264 |\n| 8 | 2032 | 135,168 | 1,081,345 |\n"},
     [f"{LIMITS}:2"]),
]

if __name__ == "__main__":
    common.run(check, PLANTS)
