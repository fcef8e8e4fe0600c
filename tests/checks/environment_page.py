# SPDX-License-Identifier: MIT
"""doc/environment.md is what ferry-info makes of lib/config/config.def.
Arguments: the source root, the command that prints the page."""

import os
import pathlib
import subprocess
import sys

import common

PAGE = "doc/environment.md"


def make_check(page):
    def check(root):
        path = pathlib.Path(root) / PAGE
        committed = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        made = page.splitlines()
        for number in range(max(len(made), len(committed))):
            if made[number:number + 1] != committed[number:number + 1]:
                return [f"{PAGE}:{number + 1}: is not what config.def says; run scripts/update-docs"]
        return []

    return check


def plants(page):
    lines = page.splitlines(keepends=True)
    last = len(lines)
    return [
        ({PAGE: page}, []),
        ({PAGE: page.replace("`FERRY_CMA`", "`FERRY_CMB`")},
         [f"{PAGE}:{next(n for n, line in enumerate(lines, 1) if 'FERRY_CMA' in line)}"]),
        ({PAGE: "".join(lines[:-1])}, [f"{PAGE}:{last}"]),
        ({PAGE: page + "| more |\n"}, [f"{PAGE}:{last + 1}"]),
        ({}, [f"{PAGE}:1"]),
    ]


if __name__ == "__main__":
    made_page = subprocess.run(
        sys.argv[2:], check=True, capture_output=True, text=True).stdout
    common.run(make_check(made_page), plants(made_page))
