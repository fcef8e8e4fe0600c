# SPDX-License-Identifier: MIT
"""The instructions by which kernels publish and look: compiles every publishing function of the
device layer and the kernels of the compute path for each AMD GPU, and judges every path (the rules
stand in rules.py). With --plants it puts faults into copies of the headers, one at a time, each
of which must be found on every GPU; a table says by which rule.
Arguments: [--plants] source root, folder for files, compiler, its flags and --, then GPUs."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import listing
from plants import PLANTS
from rules import Kernel, judge

# A kernel of a source file.
KERNEL = re.compile(r"^FERRY_(?:PROBE|KERNEL)\b[^(]*?(\w+)\([^)]*\) {", re.MULTILINE)
SKIPPED = 77
ONLY = os.environ.get("TEST_PLANT", "")  # plants whose name has this
PROBE = "tests/amd/isa/probe.hip.cpp"
SHIPPED = "lib/amd/kernels/kernels.hip.cpp"

SINGLE = "reserve packet wptr doorbell acquire"
SHARED = SINGLE + " stamp arrivals"
TEAM = SHARED + " signal"
LANES = {"shared": ["packet"], "announces": ["wptr", "stamp"]}
PARTS = {"shared": ["payload"], "announces": ["signal", "arrived"]}
KERNELS = {
    PROBE: {
        "put_signal_single": Kernel(SINGLE, one_lane=True),
        "put_signal_shared": Kernel(SHARED, one_lane=True),
        "submit_wave": Kernel(SHARED + " sync", **LANES),
        "submit_workgroup": Kernel(SINGLE + " sync", **LANES),
        "team_put_signal_wave": Kernel(TEAM + " sync", **PARTS),
        "team_put_signal_workgroup": Kernel(TEAM + " sync", **PARTS),
        "team_fence": Kernel(SHARED + " landed sync"),
        "signal_single": Kernel(SINGLE, one_lane=True),
        "submit_single": Kernel(SINGLE, one_lane=True),
        "submit_shared": Kernel(SHARED, one_lane=True),
        "team_put_signal_thread": Kernel(TEAM),
        "team_signal_workgroup": Kernel(TEAM + " sync"),
        "team_put_value": Kernel(SHARED),
        "team_barrier": Kernel(TEAM + " sync"),
        "team_alltoall_wave": Kernel(TEAM + " sync"),
        "team_alltoall_workgroup": Kernel(TEAM + " sync"),
        "team_allgather": Kernel(TEAM + " sync"),
        "team_broadcast": Kernel(TEAM + " sync"),
    },
    SHIPPED: {
        "ferry_low_latency": Kernel("word poll"),
        "ferry_wide": Kernel(
            "ready arrived payload acquire sync stream_load stream_store", **PARTS),
        "ferry_start": Kernel("release ended acquire", one_lane=True),
        "ferry_put_signal": Kernel(SINGLE, one_lane=True),
    },
}


def knows_roles(text):
    """Whether the listing tells where an instruction was inlined from: that of clang 19 does not."""
    return "@[" in text


class Compiler:
    def __init__(self, command, root):
        self.command = command
        self.root = root

    def compile(self, source, arch, extra=()):
        done = subprocess.run(
            [*self.command, f"--offload-arch={arch}", "-I.", "-Iinclude", "-S", "-o", "-", source,
             *extra], cwd=self.root, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{source} does not compile for {arch}:\n{done.stderr}")
        return done.stdout

    def faults(self, source, arch):
        """(kernel, rule, place, text) of all kernels of a file, and how many those are."""
        text = self.compile(source, arch, ["-g1"])
        found = listing.parse(text, listing.Source(self.root))
        wanted = KERNELS[source]
        if not knows_roles(text):
            wanted = {name: Kernel("") for name in wanted}
        kernels = KERNEL.findall((self.root / source).read_text(encoding="utf-8"))
        faults = [(name, "missing", source, "no such kernel") for name in kernels
                  if name not in found]
        for name, function in found.items():
            judged = judge(function, listing.Target(arch), wanted[name]) if name in wanted else [
                ("missing", source, "a kernel of which nothing is demanded")]
            faults += [(name, *fault) for fault in judged]
        return faults, len(found)


def check_line_tables(compiler, arch):
    """What is judged is what ships: line tables change no instruction."""
    with_tables = listing.parse(compiler.compile(SHIPPED, arch, ["-g1"]), listing.Source(compiler.root))
    without = listing.parse(compiler.compile(SHIPPED, arch), listing.Source(compiler.root))

    def code(functions):
        return {name: [(i.opcode, i.operands) for i in function.instructions()]
                for name, function in functions.items()}

    same = code(with_tables) == code(without)
    return [] if same else [(SHIPPED, "missing", arch, "line tables change the instructions")]


def check_all(compiler, archs, pool):
    jobs = [(source, arch) for arch in archs for source in KERNELS]
    results = list(pool.map(lambda job: compiler.faults(*job), jobs))
    failed = 0
    for (source, arch), (faults, kernels) in zip(jobs, results):
        print(f"{arch}: {source}: {kernels} kernels, {len(faults)} faults")
        for fault in faults:
            print("    " + ": ".join(fault))
        failed += len(faults)
    for arch in archs:
        for fault in check_line_tables(compiler, arch):
            print("    " + ": ".join(fault))
            failed += 1
    return failed


def copy_tree(root, to):
    shutil.rmtree(to, ignore_errors=True)
    for folder in ("device", "include", "lib/amd/kernels", "tests/amd"):
        shutil.copytree(root / folder, to / folder)


def keep_kernel(text, name):
    """A source file without its other kernels."""
    pieces = re.split(r"(?m)^(?=FERRY_(?:PROBE|KERNEL)\b)", text)
    return "".join(piece for piece in pieces
                   if not KERNEL.match(piece) or KERNEL.match(piece).group(1) == name)


def try_plant(compiler, folder, plant, archs):
    """For each GPU the rules that found the fault."""
    to = folder / plant.name.replace(" ", "-")
    copy_tree(compiler.root, to)
    for path, old, new in plant.edits:
        text = (to / path).read_text(encoding="utf-8")
        if text.count(old) < 1:
            raise RuntimeError(f"plant '{plant.name}': {path} has no '{old}'")
        (to / path).write_text(text.replace(old, new), encoding="utf-8")
    source = to / plant.source
    source.write_text(keep_kernel(source.read_text(encoding="utf-8"), plant.kernel), encoding="utf-8")
    planted = Compiler(compiler.command, to)
    found = {}
    for arch in archs:
        if plant.archs and arch not in plant.archs:
            continue
        faults, _ = planted.faults(plant.source, arch)
        found[arch] = sorted({rule for _, rule, _, _ in faults})
    shutil.rmtree(to)
    return found


def check_plants(compiler, folder, archs, pool):
    plants = [plant for plant in PLANTS if ONLY in plant.name]
    results = pool.map(lambda plant: try_plant(compiler, folder, plant, archs), plants)
    failed = 0
    for plant, found in zip(plants, results):
        lost = [arch for arch, rules in found.items() if plant.rule not in rules]
        cells = "; ".join(f"{arch}: {', '.join(rules) or 'NOT FOUND'}" for arch, rules in found.items())
        print(f"{'FAIL' if lost else 'found'} | {plant.name} | {plant.rule} | {cells}")
        failed += len(lost)
    print(f"{len(plants)} planted faults, {failed} not found")
    return failed


def main():
    arguments = sys.argv[1:]
    plants = arguments[0] == "--plants"
    arguments = arguments[1:] if plants else arguments
    split = arguments.index("--")
    compiler = Compiler(arguments[2:split], pathlib.Path(arguments[0]))
    folder, archs = pathlib.Path(arguments[1]), arguments[split + 1:]
    if not knows_roles(compiler.compile(SHIPPED, archs[0], ["-g1"])):
        if plants:
            print("skipped: listings of this compiler do not tell what a store is for; clang 22 does")
            sys.exit(SKIPPED)
        print("listings of this compiler do not tell what a store is for: fewer rules are judged")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if plants:
            failed = check_plants(compiler, folder, archs, pool)
        else:
            failed = check_all(compiler, archs, pool)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
