# SPDX-License-Identifier: MIT
"""Reads the assembly that clang makes of kernels, compiled with line tables, and follows every path
through it. What an instruction is for is told by the source lines that it was inlined from, so that
the order of stores, write-backs, waits and invalidations can be judged by the role of each store."""

import pathlib
import re

# The last five are of lib/amd/kernels and the exchanges; the first of each pair is the role.
STORE_ROLES = [
    ("wptr", r"store_\w+\(ring\.wptr"),
    ("doorbell", r"store_\w+\(ring\.doorbell"),
    ("stamp", r"store_\w+\(stamp\("),
    ("arrivals", r"fetch_add\w*\(ring_\.arrivals"),
    ("signal", r"fetch_add\w*\(t\.signal"),
    ("landed", r"fetch_add\w*\(team\.landed"),
    ("reserve", r"store_\w+\(ring_\.reserved|cas\(ring_\.reserved"),
    ("packet", r"place(_nops|_segments)?\("),
    ("ready", r"store_\w+\(peer\.their_ready"),
    ("arrived", r"store_\w+\(peer\.their_arrived"),
    ("word", r"store_\w+\(to \+ i, flag"),
    ("release", r"store_\w+\(handle\.release"),
    ("ended", r"(device::)?store_\w+\(&args\.report->ended"),
    ("payload", r"copy_by_lanes\(|copy_wide\("),
]
# Whoever sees these stores may look at everything that was stored before.
PUBLISHING = {"wptr", "doorbell", "stamp", "arrivals", "signal", "landed", "ready", "arrived",
              "release", "ended"}
RELEASES = r"store_release\(|fetch_add\(|cas\("
ACQUIRES = r"load_acquire\(|fetch_add\(|cas\("
SYSTEM = r"(load|store)_(relaxed|acquire|release)\(|fetch_add\w*\(|cas\("


class Target:
    """The bits and instructions by which a processor reaches system scope."""

    def __init__(self, arch):
        newer = arch != "gfx90a"
        self.load_bits = {"sc0", "sc1"} if newer else {"glc"}
        self.store_bits = {"sc0", "sc1"} if newer else set()
        self.atomic_bits = {"sc1"} if newer else set()
        self.write_back = {"sc0", "sc1"} if newer else set()
        self.stream_bits = {"nt"} if newer else {"glc", "slc"}
        # Every one of them, in this order.
        self.invalidates = ["buffer_inv"] if newer else ["buffer_invl2", "buffer_wbinvl1_vol"]
        self.invalidate_bits = {"sc0", "sc1"} if newer else set()


class Source:
    """Lines of the files that an instruction may come from."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = {}

    def text(self, path, line, column):
        if path not in self.files:
            file = self.root / path
            self.files[path] = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        lines = self.files[path]
        return lines[line - 1][max(column - 1, 0):] if 0 < line <= len(lines) else ""


class Instruction:
    """fresh: the listing gives its place anew; without that it may be that of the one before."""

    def __init__(self, opcode, operands, chain, source, fresh=False):
        self.opcode = opcode
        self.fresh = fresh
        self.words = set(operands.replace(",", " ").split())
        self.operands = operands
        self.chain = chain
        self.texts = [source.text(*place) for place in chain]
        self.store = bool(re.match(r"(global|flat|buffer)_store", opcode))
        self.atomic = bool(re.match(r"(global|flat|buffer)_atomic", opcode))
        self.load = bool(re.match(r"(global|flat|buffer)_load", opcode))
        self.scalar_load = opcode.startswith("s_load") or opcode.startswith("s_buffer_load")
        self.waits_for_memory = opcode == "s_waitcnt" and "vmcnt(0)" in operands
        self.role = self.find_role()
        # Not the reckoning of an address that is handed to such a call. A load that was made plain may
        # have lost the innermost place.
        inside = bool(chain) and chain[0][0].endswith("device/platform.hpp")
        inside |= fresh and self.texts[:1] != [] and bool(
            re.match(r"load_(relaxed|acquire)\(", self.texts[0]))
        self.system = inside and (self.says(SYSTEM) or self.says("__hip_atomic_"))
        self.acquires = inside and (self.load or self.atomic) and (
            self.says(ACQUIRES) or self.says("__hip_atomic_.*__ATOMIC_ACQUIRE"))

    def says(self, pattern):
        return any(re.match(pattern, text) for text in self.texts)

    def find_role(self):
        if not (self.store or self.atomic):
            return None
        for role, pattern in STORE_ROLES:
            if self.says(pattern):
                return role
        return "other"

    def where(self):
        # The innermost place outside platform.hpp says most.
        for path, line, _ in self.chain:
            if not path.endswith("platform.hpp"):
                return f"{path}:{line}"
        return "unknown place"


class Function:
    """Basic blocks: lists of instructions, and for each the blocks that may follow."""

    def __init__(self, name):
        self.name = name
        self.blocks = [[]]
        self.labels = {}
        self.exits = [[]]  # labels, or None for the next block

    def start_block(self, label=None):
        if self.blocks[-1]:
            self.blocks.append([])
            self.exits.append([])
        if label:
            self.labels[label] = len(self.blocks) - 1

    def add(self, instruction):
        self.blocks[-1].append(instruction)
        if not instruction.opcode.startswith(("s_branch", "s_cbranch", "s_endpgm")):
            return
        target = instruction.operands.split()[-1] if instruction.operands else None
        if instruction.opcode != "s_endpgm":
            self.exits[-1].append(target)
        if instruction.opcode.startswith("s_cbranch"):
            self.exits[-1].append(None)
        self.blocks.append([])
        self.exits.append([])

    def following(self, index):
        block = self.blocks[index]
        jumps = bool(block) and block[-1].opcode.startswith(("s_branch", "s_cbranch", "s_endpgm"))
        exits = self.exits[index] if jumps else [None]
        for label in exits:
            target = index + 1 if label is None else self.labels[label]
            if target < len(self.blocks):
                yield target

    def instructions(self):
        return [instruction for block in self.blocks for instruction in block]


def parse(text, source):
    """The kernels of an assembly file, by name."""
    functions, current, chain, fresh = {}, None, (), False
    names = set(re.findall(r"^\s*\.amdhsa_kernel\s+(\S+)", text, re.MULTILINE))
    for line in text.splitlines():
        label = re.match(r"([\w.$]+):", line)
        if label and label.group(1) in names:
            current = functions[label.group(1)] = Function(label.group(1))
            chain = ()
        elif line.startswith(".Lfunc_end"):
            current = None
        elif current is None:
            continue
        elif label and label.group(1).startswith(".LBB"):
            current.start_block(label.group(1))
        elif re.match(r"\s+\.loc\s", line):
            chain = tuple((path.removeprefix("./"), int(row), int(column)) for path, row, column
                          in re.findall(r"([\w./-]+):(\d+):(\d+)", line.partition(";")[2]))
            fresh = True
        elif "; wave barrier" in line:
            current.add(Instruction("wave_barrier", "", chain, source))
        else:
            code = line.partition(";")[0].split(None, 1)
            if code and not code[0].startswith("."):
                operands = code[1].strip() if len(code) > 1 else ""
                current.add(Instruction(code[0], operands, chain, source, fresh))
                fresh = False
    return functions
