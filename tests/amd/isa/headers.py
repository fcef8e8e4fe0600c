# SPDX-License-Identifier: MIT
"""Every header that kernels may include compiles for AMD GPUs, each alone and all together, with
builtins only, for host and GPU, without a warning.
Arguments: source root, compiler, its flags and --, then GPUs."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


# What needs the headers of ROCm, which are not there.
PLANT = "inline __attribute__((device)) unsigned lane() { return threadIdx.x; }\n"


def compile_text(root, command, text, flags):
    """What the compiler says, or nothing."""
    done = subprocess.run(
        [*command, *WARNINGS, *flags, "-fsyntax-only", "-I.", "-Iinclude", "-"], cwd=root,
        input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


def main():
    split = sys.argv.index("--")
    root, command, archs = pathlib.Path(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
    paths = [path for folder in ("device", "lib/amd/kernels")
             for path in sorted((root / folder).glob("*.hpp"))]
    headers = [path.relative_to(root).as_posix() for path in paths] + ["include/ferry/device.hpp"]
    include = {header: f'#include "{header}"\n' for header in headers}
    gpus = [["--cuda-device-only", f"--offload-arch={arch}"] for arch in archs]
    jobs = [(header, text, gpus[0]) for header, text in include.items()]
    jobs += [("all headers", "".join(include.values()), flags)
             for flags in [*gpus, ["--cuda-host-only"]]]
    if not compile_text(root, command, PLANT, gpus[0]):
        print("self-test: a planted fault was not found")
        sys.exit(1)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda job: compile_text(root, command, *job[1:]), jobs))
    faults = [f"{name}: {' '.join(flags)}:\n{text}"
              for (name, _, flags), text in zip(jobs, said) if text]
    print("\n".join(faults))
    print(f"{len(headers)} headers for {', '.join(archs)}: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
