# SPDX-License-Identifier: MIT
"""FFTW's MPI transforms, of the sources of Debian on Debian's binary of the serial part: its own checks
pass with and without Ferry, forward and back, and its planner times MPI_Alltoall."""

import re

import common

# Problems of mpi-bench: complex and real, in place and out of place, forth and back, sizes that the
# ranks do not divide. Its planner tries MPI_Alltoall for a transposition from one array to another that
# may destroy the first, which it then times against messages in pairs.
PROBLEMS = ["icf1024x64", "ocb60x14", "ocf12x13x14", "orf64x32", "irb12x18x10", "ocb8192"]
TIMED = "docf512x512"


def compile_all(source, libraries, program):
    """The parallel part and its bench, without the long list of serial transforms."""
    if program.exists():
        return
    if not (source / "config.h").exists():
        common.build(["./configure", "--enable-mpi", "--disable-fortran", "--disable-doc", "CC=gcc",
                      "MPICC=mpicc.mpich"], source)
    common.build(["make", "-C", "libbench2", "-j2"], source)
    left_out = {"f03-wrap.c", "testsched.c", "mpi-bench.c"}
    parts = [path for path in sorted((source / "mpi").glob("*.c")) if path.name not in left_out]
    parts += [source / "mpi/mpi-bench.c", source / "tests/fftw-bench.c", source / "tests/hook.c"]
    includes = [f"-I{source / part}" for part in (
        ".", "api", "kernel", "dft", "rdft", "reodft", "mpi", "tests", "libbench2", "simd-support")]
    common.build(
        ["mpicc.mpich", "-O2", "-w", "-DHAVE_CONFIG_H", *includes, *parts,
         source / "libbench2/libbench2.a", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lfftw3",
         "-lm", "-o", program], source)


def verify(ranks, program, folder, ferry):
    checks = [f"-y{problem}" for problem in PROBLEMS]
    return common.Run(ranks, [program, "--verbose=1", *checks], folder, ferry)


def figures(run):
    """The errors that the checks saw, problem by problem."""
    return [float(number) for number in re.findall(r"\b\d(?:\.\d+)?e[-+]\d+\b", run.out)]


def main():
    common.need("mpicc.mpich", "make")
    faults = []
    with common.work_folder("fftw") as folder:
        apt = common.Apt(folder)
        libraries = apt.binary("libfftw3-double3", "libfftw3-dev") / "usr/lib/x86_64-linux-gnu"
        source = apt.source("fftw3")
        program = folder / "mpi-bench"
        compile_all(source, libraries, program)
        for ranks in (1, 2, 3):
            for ferry in (False, True):
                run = verify(ranks, program, folder, ferry)
                seen = figures(run)
                if run.code != 0 or len(seen) < 3 * len(PROBLEMS) or max(seen) > 1e-12:
                    faults.append(f"{ranks} ranks, Ferry {ferry}: {run.out[-800:]}{run.err[-800:]}")
        without = common.Run(2, [program, "-opatient", TIMED], folder, False)
        with_ferry = common.Run(2, [program, "-opatient", TIMED], folder, True)
        if with_ferry.taken == 0 or with_ferry.calls["alltoall"][0] == 0:
            faults.append("Ferry took no call, or the planner made none of alltoall:\n" + with_ferry.err[-2000:])
        common.table([("FFTW, 2 ranks", without, with_ferry)])
        print(without.out.strip(), "without,", with_ferry.out.strip(), "with Ferry")
    common.finish(faults)


if __name__ == "__main__":
    main()
