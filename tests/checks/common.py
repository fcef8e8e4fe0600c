# SPDX-License-Identifier: MIT
"""What the checks of this folder share. A check is a function from a source root to a list of
faults "file:line: text". Before it looks at Ferry it has to find the faults that were planted in
small trees: a check that cannot fail is none."""

import os
import pathlib
import re
import sys
import tempfile

SOURCE_FOLDERS = ("include", "device", "lib", "collectives", "apps", "examples", "tests")
CPP = (".h", ".hpp", ".c", ".cpp", ".def")
SKIPPED = 77


def files(root, folders=SOURCE_FOLDERS, suffixes=CPP):
    """Paths below the folders of root, relative to it, in a fixed order."""
    found = []
    for folder in folders:
        for path in sorted((pathlib.Path(root) / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                found.append(path.relative_to(root).as_posix())
    return found


def lines_of(root, path):
    return (pathlib.Path(root) / path).read_text(encoding="utf-8").splitlines()


def code_only(text):
    """text with comments blanked and the inside of literals replaced by x; lines stay lines."""
    pattern = re.compile(
        r'R"(?P<tag>[^(\s"\\]{0,16})\(.*?\)(?P=tag)"'  # raw string
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"  # not the separator in 1'000
        r"|//[^\n]*|/\*.*?\*/",
        re.DOTALL,
    )

    def blank(match):
        found = match.group(0)
        if found.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", "x", found[1:-1]) + found[-1]

    return pattern.sub(blank, text)


def write_tree(root, tree):
    for path, text in tree.items():
        file = pathlib.Path(root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def self_test(check, plants):
    """plants: (tree, places); the check must find a fault at each place, and at no other."""
    for tree, places in plants:
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, tree)
            faults = check(root)
        found = [place for place in places if any(f.startswith(place + ":") for f in faults)]
        if found != list(places) or len(faults) != len(places):
            print(f"self-test: planted {places}, found {faults}")
            sys.exit(1)


def run(check, plants):
    """The main of a check: its arguments are the source root."""
    self_test(check, plants)
    faults = check(os.path.abspath(sys.argv[1]))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults; {len(plants)} planted trees were judged right")
    sys.exit(1 if faults else 0)
