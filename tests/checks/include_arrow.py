# SPDX-License-Identifier: MIT
"""A file includes only files of its own floor or below; apps and examples see the public headers
only; what is installed includes only what is installed."""

import os
import re

import common

# The longest prefix that fits a path gives its floor.
FLOORS = {
    "include/ferry/": 0,
    "include/ferry/device.hpp": 1,
    "device/": 1,
    "lib/base/": 1,
    "lib/config/": 1,
    "lib/schedule/": 2,
    "lib/topology/": 2,
    "lib/memory/": 2,
    "collectives/": 3,
    "lib/exec/": 4,
    "lib/engine/": 4,
    "lib/amd/": 4,
    "lib/nvidia/": 4,
    "lib/api/": 5,
    "lib/interpose/": 5,
    "apps/": 6,
    "examples/": 6,
    "tests/": 6,
}
OUTSIDERS = ("apps/", "examples/")
INSIDERS = ("apps/ferry-plan/",)  # shows plans without a job, which no public call does
INSTALLED = ("include/", "device/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def floor_of(path):
    fitting = [prefix for prefix in FLOORS if path.startswith(prefix)]
    return FLOORS[max(fitting, key=len)] if fitting else None


def resolve(root, path, quote, name):
    """The file of this tree that an include means, or None when it is somebody else's."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    candidates = [beside] if quote == '"' else []
    candidates += [name, "include/" + name]
    if name.startswith("ferry/device/"):
        candidates.append(name.removeprefix("ferry/"))
    for candidate in candidates:
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def judge(path, target):
    """What is wrong when path includes target, or None."""
    own, other = floor_of(path), floor_of(target)
    if other is None:
        return f"includes {target}, which has no floor"
    if other > own:
        return f"floor {own} includes {target} of floor {other}"
    outside = path.startswith(OUTSIDERS) and not path.startswith(INSIDERS)
    if outside and not target.startswith(INSTALLED + OUTSIDERS):
        return f"programs see public headers only, not {target}"
    if path.startswith(INSTALLED) and not target.startswith(INSTALLED):
        return f"is installed and includes {target}, which is not"
    return None


def check(root):
    faults = []
    for path in common.files(root):
        if floor_of(path) is None:
            faults.append(f"{path}:1: its folder has no floor")
            continue
        for number, line in enumerate(common.lines_of(root, path), 1):
            include = INCLUDE.match(line)
            target = resolve(root, path, *include.groups()) if include else None
            wrong = judge(path, target) if target else None
            if wrong:
                faults.append(f"{path}:{number}: {wrong}")
    return faults


TREE = {
    "include/ferry/ferry.h": "#include <mpi.h>\n",
    "include/ferry/device.hpp": "#pragma once\n#include <ferry/device/ring.hpp>\n",
    "device/ring.hpp": '#pragma once\n#include "ferry/ferry.h"\n',
    "lib/base/error.hpp": "#pragma once\n",
    "lib/exec/run.hpp": '#include "lib/base/error.hpp"\n#include "device/ring.hpp"\n',
    "tests/run_test.cpp": '#include "lib/exec/run.hpp"\n',
    "apps/info/main.cpp": '#include <ferry/ferry.h>\n#include "table.hpp"\n',
    "apps/info/table.hpp": "#pragma once\n",
}
PLANTS = [
    (TREE, []),
    (TREE | {"lib/memory/m.cpp": '\n#include "lib/exec/run.hpp"\n'}, ["lib/memory/m.cpp:2"]),
    (TREE | {"lib/base/b.hpp": '#include "../exec/run.hpp"\n'}, ["lib/base/b.hpp:1"]),
    (TREE | {"include/ferry/ferry.hpp": "# include <ferry/device.hpp>\n"},
     ["include/ferry/ferry.hpp:1"]),
    (TREE | {"collectives/a.cpp": '#include "lib/engine/e.hpp"\n', "lib/engine/e.hpp": "\n"},
     ["collectives/a.cpp:1"]),
    (TREE | {"apps/a.cpp": '#include "lib/base/error.hpp"\n'}, ["apps/a.cpp:1"]),
    (TREE | {"apps/ferry-plan/a.cpp": '#include "lib/base/error.hpp"\n'}, []),
    (TREE | {"examples/a.cpp": '#include "lib/base/error.hpp"\n'}, ["examples/a.cpp:1"]),
    (TREE | {"device/d.hpp": '#include "lib/base/error.hpp"\n'}, ["device/d.hpp:1"]),
    (TREE | {"lib/misc/m.cpp": "\n"}, ["lib/misc/m.cpp:1"]),
]

if __name__ == "__main__":
    common.run(check, PLANTS)
