# SPDX-License-Identifier: MIT
"""What is demanded of the instructions of a kernel, on every path through it:

missing   every store that the kernel is about is there, and was recognised
release   whoever may see a publishing store or atomic finds all stores before it: system stores have
          been waited for, others were written back after they were made, and then waited for
flag      after a write-back of the L2 nothing is stored before the wait for it
order     the doorbell follows a store of wptr; packets are placed before publication
barrier   where lanes meet in sync(), each wave has waited for its own stores; and they meet between
          what all lanes store and the leader's store that announces it
acquire   an acquiring load is waited for, then caches are invalidated, before anything else is read
scope     loads, stores and atomics of the protocol reach system scope
scalar    and none of them is a scalar load, which sees no other agent's stores
whole     a word with its flag is one access of 8 bytes
"""

import listing

# Facts of a path. Pending stores are (role, stage): 0 when they must be written back, 1 when a wait
# is enough.
UNMET = "stored by lanes that have not met"
AFTER_WRITE_BACK = "after a write-back"
NO_WPTR = "no wptr since the last doorbell"
PUBLISHED = "published, nothing reserved since"
LOADED, WAITED, HALF = "acquiring", "acquired, not invalidated", "invalidated in part"
ACQUIRING = {LOADED, WAITED, HALF}


class Judge:
    """Walks instructions with the facts of all paths that lead to them."""

    def __init__(self, target, kernel, report):
        self.target = target
        self.kernel = kernel
        self.report = report

    def step(self, facts, i):
        """The facts after instruction i."""
        if i.load or i.scalar_load or i.store or i.atomic:
            facts = self.access(facts, i)
        elif i.opcode == "buffer_wbl2":
            facts = self.write_back(facts, i)
        elif i.waits_for_memory:
            facts = {f for f in facts if f != AFTER_WRITE_BACK and not is_pending(f, 1)}
            facts = {WAITED if f == LOADED else f for f in facts}
        elif i.opcode in self.target.invalidates:
            facts = self.invalidate(facts, i)
        elif i.opcode in ("s_barrier", "wave_barrier"):
            facts = self.meet(facts, i)
        elif i.opcode in ("s_swappc_b64", "s_setpc_b64"):
            self.report("release", i, "a call: its stores are not followed")
        return facts

    def access(self, facts, i):
        self.demand_scope(i)
        if ACQUIRING & facts and not (i.load and LOADED in facts and facts.isdisjoint({WAITED, HALF})):
            if not i.scalar_load:
                self.report("acquire", i, "memory is used before caches are invalidated")
        if i.store or i.atomic:
            facts = self.store(facts, i)
        return facts | {LOADED} if i.acquires else facts

    def store(self, facts, i):
        if AFTER_WRITE_BACK in facts:
            self.report("flag", i, "may overtake the write-back before it")
        if i.role in listing.PUBLISHING or i.says(listing.RELEASES):
            left = sorted({f[0] for f in facts if isinstance(f, tuple)})
            if left:
                self.report("release", i, f"{i.role} while stores may be on their way: {left}")
        if i.role == "doorbell" and NO_WPTR in facts:
            self.report("order", i, "doorbell without a wptr before it")
        if i.role == "packet" and PUBLISHED in facts and self.kernel.one_lane:
            self.report("order", i, "packet behind its publication")
        if i.role in self.kernel.announces and UNMET in facts:
            self.report("barrier", i, f"{i.role} before the lanes have met")
        facts = self.follow(facts, i.role)
        through = i.system and self.reaches_system(i)
        shared = i.role in self.kernel.shared or (not through and "payload" in self.kernel.shared)
        return facts | {(i.role, 1 if through else 0)} | ({UNMET} if shared else set())

    @staticmethod
    def follow(facts, role):
        """The protocol's own state."""
        if role == "reserve":
            return facts - {PUBLISHED}
        if role == "wptr":
            return (facts - {NO_WPTR}) | {PUBLISHED}
        if role == "stamp":
            return facts | {PUBLISHED}
        return facts | {NO_WPTR} if role == "doorbell" else facts

    def write_back(self, facts, i):
        if not self.target.write_back <= i.words:
            self.report("scope", i, "the write-back stays below system scope")
            return facts
        written = {(f[0], 1) if isinstance(f, tuple) else f for f in facts}
        return written | {AFTER_WRITE_BACK}

    def invalidate(self, facts, i):
        if not self.target.invalidate_bits <= i.words:
            return facts
        if LOADED in facts:
            self.report("acquire", i, "caches are invalidated before the load has come")
        last = self.target.invalidates[-1]
        if i.opcode != last:
            return {HALF if f == WAITED else f for f in facts}
        ready = HALF if len(self.target.invalidates) > 1 else WAITED
        return facts - {ready}

    def meet(self, facts, i):
        if ACQUIRING & facts:
            self.report("acquire", i, "lanes meet before caches are invalidated")
        if not i.says(SYNC):
            return facts
        left = sorted({f[0] for f in facts if isinstance(f, tuple)})
        if left:
            self.report("barrier", i, f"lanes meet while stores may be on their way: {left}")
        return facts - {UNMET}

    def reaches_system(self, i):
        bits = self.target.atomic_bits if i.atomic else self.target.store_bits
        return bits <= i.words

    def demand_scope(self, i):
        if not i.system:
            return
        if i.scalar_load and i.fresh:
            self.report("scalar", i, f"{i.opcode} for a word of the protocol")
        elif i.load and not self.target.load_bits <= i.words:
            self.report("scope", i, f"{i.opcode} without {sorted(self.target.load_bits)}")
        elif (i.store or i.atomic) and not self.reaches_system(i):
            self.report("scope", i, f"{i.opcode} below system scope")
        if i.says(r"await_word\(|store_relaxed\(to \+ i, flag") and "dwordx2" not in i.opcode:
            self.report("whole", i, f"{i.opcode}: data and flag may come apart")


SYNC = r"(scope|group)?\.?sync\("


class Kernel:
    """What is known of a kernel: roles that it must have; whether one lane runs it; what all lanes
    store, and what the leader announces it with."""

    def __init__(self, roles, one_lane=False, shared=(), announces=()):
        self.roles = set(roles.split())
        self.one_lane = one_lane
        self.shared = set(shared)
        self.announces = set(announces)


def is_pending(fact, stage):
    return isinstance(fact, tuple) and fact[1] == stage


def find_missing(function, target, kernel):
    instructions = function.instructions()
    found = {i.role for i in instructions if i.role}
    found |= {"sync" for i in instructions
              if i.opcode in ("s_barrier", "wave_barrier") and i.says(SYNC)}
    found |= {"acquire" for i in instructions if i.acquires and i.load}
    found |= {"poll" for i in instructions if i.system and i.load}
    for kind in ("load", "store"):
        found |= {"stream_" + kind for i in instructions
                  if getattr(i, kind) and "dwordx4" in i.opcode and target.stream_bits <= i.words}
    return [("missing", function.name, f"no {role}") for role in sorted(kernel.roles - found)]


def judge(function, target, kernel):
    """Faults of one kernel: (rule, place, text)."""
    entry = {i: None for i in range(len(function.blocks))}
    entry[0] = frozenset({NO_WPTR})
    quiet = Judge(target, kernel, lambda *_: None)
    waiting = [0]
    while waiting:
        index = waiting.pop()
        facts = set(entry[index])
        for instruction in function.blocks[index]:
            facts = quiet.step(facts, instruction)
        for after in function.following(index):
            known = entry[after]
            merged = frozenset(facts) if known is None else known | facts
            if merged != known:
                entry[after] = merged
                waiting.append(after)
    faults = set()
    loud = Judge(target, kernel, lambda rule, i, text: faults.add((rule, i.where(), text)))
    for index, facts in entry.items():
        for instruction in function.blocks[index] if facts is not None else []:
            facts = loud.step(set(facts), instruction)
    return find_missing(function, target, kernel) + sorted(faults)
