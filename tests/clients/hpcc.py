# SPDX-License-Identifier: MIT
"""HPCC of the sources of Debian: its own checks pass with and without Ferry."""

import re

import common

MAKEFILE = """SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir
RM = /bin/rm -f
TOUCH = touch
ARCH = ferry
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
LAlib = -lblas -lm
F2CDEFS = -DAdd__ -DF77_INTEGER=int -DStringSunStyle
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) $(LAlib)
HPL_OPTS = -DHPL_CALL_CBLAS
HPL_DEFS = $(F2CDEFS) $(HPL_OPTS) $(HPL_INCLUDES)
CC = mpicc.mpich
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O2 -fcommon -w
LINKER = mpicc.mpich
LINKFLAGS = $(CCFLAGS) -L{libraries} -Wl,-rpath,{libraries}
ARCHIVER = ar
ARFLAGS = r
RANLIB = echo
"""
# What must be equal, and what must be small: maximal errors of the transforms.
EQUAL = ("Success", "CommWorldProcs", "PTRANS_n", "MPIRandomAccess_Errors", "HPL_N",
         "MPIRandomAccess_LCG_Errors", "MPIFFT_N")
SMALL = {"PTRANS_residual": 1e-9, "MPIFFT_maxErr": 1e-9}


def summary(folder):
    text = (folder / "hpccoutf.txt").read_text(encoding="utf-8", errors="replace")
    found = dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))
    found["failed"] = len(re.findall(r"\bFAILED\b", text))
    return found


def run(folder, ferry):
    (folder / "hpccoutf.txt").unlink(missing_ok=True)
    done = common.Run(4, ["./hpcc"], folder, ferry)
    return done, summary(folder) if done.code == 0 else {}


def compare(plain, ferry):
    for key in EQUAL:
        if plain.get(key) != ferry.get(key):
            yield f"{key}: {plain.get(key)} without, {ferry.get(key)} with Ferry"
    for name, values in (("without", plain), ("with Ferry", ferry)):
        if values.get("Success") != "1" or values.get("failed") != 0:
            yield f"{name}: no success: {values.get('Success')}, {values.get('failed')} failed"
        for key, limit in SMALL.items():
            if not 0 <= float(values.get(key, "nan")) <= limit:
                yield f"{name}: {key} is {values.get(key)}"


def main():
    common.need("mpicc.mpich", "make")
    with common.work_folder("hpcc") as folder:
        apt = common.Apt(folder)
        source = apt.source("hpcc")
        if not (source / "hpcc").exists():
            libraries = apt.binary("libblas-dev", "libblas3") / "usr/lib/x86_64-linux-gnu/blas"
            (source / "hpl/Make.ferry").write_text(
                MAKEFILE.replace("{libraries}", str(libraries)), encoding="utf-8")
            common.build(["make", "arch=ferry", "-j2"], source)
        (source / "hpccinf.txt").write_bytes((source / "_hpccinf.txt").read_bytes())
        without, plain = run(source, False)
        with_ferry, ours = run(source, True)
        faults = list(compare(plain, ours))
        if with_ferry.taken == 0:
            faults.append("Ferry took no call:\n" + with_ferry.err[-2000:])
        common.table([("HPCC, 4 ranks", without, with_ferry)])
        common.finish(faults)


if __name__ == "__main__":
    main()
