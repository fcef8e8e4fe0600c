# SPDX-License-Identifier: MIT
"""PT-Scotch of the sources of Debian: it partitions and orders graphs over the ranks, with MPI_Allgather,
MPI_Alltoallv and reductions in every step. With and without Ferry each vertex gets the same part and the
same place in the order, and its own check of a distributed graph passes."""

import re

import common

RANKS = 4
# Deterministic, and random numbers are the same in each run: results are repeatable.
MAKEFILE = """EXE =
LIB = .a
OBJ = .o
MAKE = make
AR = ar
ARFLAGS = -rcs
CAT = cat
CCS = gcc
CCP = mpicc.mpich
CCD = mpicc.mpich
CFLAGS = -O2 -w -DCOMMON_RANDOM_FIXED_SEED -DSCOTCH_DETERMINISTIC -DSCOTCH_RENAME -Drestrict=__restrict
CLIBFLAGS =
LDFLAGS = -lm -lrt -pthread
CP = cp
FLEX = {root}/usr/bin/flex
LN = ln
MKDIR = mkdir -p
MV = mv
RANLIB = ranlib
BISON = {root}/usr/bin/bison
"""
SIDE = 60  # of the cube of vertices that is cut


def write_graph(path, side):
    """A cube of side^3 vertices, each joined to its neighbours, as Scotch reads it."""
    def neighbours(x, y, z):
        for dx, dy, dz in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)):
            if 0 <= x + dx < side and 0 <= y + dy < side and 0 <= z + dz < side:
                yield (x + dx) + side * ((y + dy) + side * (z + dz))

    lines = []
    edges = 0
    for z in range(side):
        for y in range(side):
            for x in range(side):
                ends = list(neighbours(x, y, z))
                edges += len(ends)
                lines.append(" ".join(map(str, [len(ends), *ends])))
    path.write_text(f"0\n{side ** 3} {edges}\n0 000\n" + "\n".join(lines) + "\n", encoding="utf-8")


def compile_all(source, root):
    (source / "Makefile.inc").write_text(MAKEFILE.replace("{root}", str(root)), encoding="utf-8")
    settings = {"BISON_PKGDATADIR": str(root / "usr/share/bison")}
    common.build(["make", "libptscotch"], source, **settings)
    common.build(["make", "-C", "scotch", "ptscotch"], source, **settings)


def statistics(run):
    """What the program tells about its result, without the times."""
    return [line for line in run.out.splitlines() if re.match(r"[MPO]\t", line) and "Time" not in line]


def compare(name, command, folder, result=None):
    """One program without and with Ferry: the two runs, and what differs."""
    runs, results, faults = [], [], []
    for ferry in (False, True):
        runs.append(common.Run(RANKS, command, folder, ferry))
        text = statistics(runs[-1])
        if result is not None and runs[-1].code == 0:
            # Rank 0 writes the parts as they arrive, in any order.
            text += sorted((folder / result).read_text(encoding="utf-8").splitlines())
        results.append(text)
        if runs[-1].code != 0:
            faults.append(f"{name}, Ferry {ferry}: {runs[-1].out[-800:]}{runs[-1].err[-800:]}")
    if results[0] != results[1]:
        faults.append(f"{name}: another result with Ferry")
    if runs[1].taken == 0:
        faults.append(f"{name}: Ferry took no call:\n" + runs[1].err[-2000:])
    return (f"{name}, {RANKS} ranks", *runs), faults


def main():
    common.need("mpicc.mpich", "make", "m4")
    rows, faults = [], []
    with common.work_folder("ptscotch") as folder:
        apt = common.Apt(folder)
        source = apt.source("scotch") / "src"
        programs = source / "scotch"
        if not (programs / "dgpart").exists():
            compile_all(source, apt.binary("flex", "bison"))
        graph = folder / "cube.grf"
        if not graph.exists():
            write_graph(graph, SIDE)
        for name, command, result in (
                ("dgtst", [programs / "dgtst", graph], None),
                ("dgpart", [programs / "dgpart", "16", graph, "parts", "-vm"], "parts"),
                ("dgord", [programs / "dgord", graph, "order", "-vs"], "order")):
            row, found = compare(name, command, folder, result)
            rows.append(row)
            faults += found
        common.table(rows)
    common.finish(faults)


if __name__ == "__main__":
    main()
