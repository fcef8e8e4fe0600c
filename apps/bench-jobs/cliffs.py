# SPDX-License-Identifier: MIT
"""Finds cliffs in measured times: steps that nobody would expect from the sizes around them."""

import random

import jobs

GROWTH = 1.2  # a smaller size may take so much longer than a larger one
UNALIGNED = 1.3
STEP = 2.0  # of one rank more, after scaling by the bytes that all move
ORDER = 1.2  # between sizes in ascending and in another order
# More ranks than cores must not cost milliseconds: alltoall of 64 bytes, by ranks.
CROWDED_BYTES = 64
CROWDED_US = {4: 1000.0, 8: 1000.0, 16: 2000.0}
OFFSET = 3
SIZES = [1 << bit for bit in range(3, 23)]


def work(collective, ranks, cores):
    """Bytes that move for one byte of a block, over the cores that can move them."""
    transfers = ranks - 1 if collective == "bcast" else ranks * (ranks - 1)
    return transfers / min(ranks, cores)


def series(rows):
    """Times by size, for each (collective, form, memory, ranks, offset, order)."""
    lines = {}
    for row in rows:
        key = (row["collective"], row["form"], row["memory"], row["ranks"], row["offset"],
               row["order"])
        lines.setdefault(key, {})[row["bytes"]] = row["ferry_us_median"]
    return lines


def name(key):
    collective, form, memory, ranks, *_ = key
    return f"{collective}, {form}, {memory} memory, {ranks} ranks"


def not_monotone(key, times):
    sizes = sorted(times)
    for small, large in zip(sizes, sizes[1:]):
        if times[small] > GROWTH * times[large]:
            yield (f"{name(key)}: {small} bytes take {times[small]:.2f} us, {large} bytes "
                   f"{times[large]:.2f} us: {times[small] / times[large]:.2f} times as long, "
                   f"allowed {GROWTH}")


def slower(key, times, base, factor, what):
    for size in sorted(times.keys() & base.keys()):
        if times[size] > factor * base[size]:
            yield (f"{name(key)}: {size} bytes take {times[size]:.2f} us {what} {base[size]:.2f} us: "
                   f"{times[size] / base[size]:.2f} times as long, allowed {factor}")


def rank_steps(key, lines, cores):
    """From n to n + 1 ranks. The step from one rank for each core to more is left out: from there
    on a message costs a switch of processes, whoever sends it."""
    collective, form, memory, ranks, offset, order = key
    base = lines.get((collective, form, memory, ranks - 1, offset, order))
    if base is None or ranks - 1 == cores or ranks < 3:
        return
    scale = work(collective, ranks, cores) / work(collective, ranks - 1, cores)
    scaled = {size: time * scale for size, time in base.items()}
    yield from slower(key, lines[key], scaled, STEP, f"where {ranks - 1} ranks scaled take")


def find(rows, cores):
    """Every violation in one sentence with its figures."""
    lines = series(rows)
    found = []
    for key, times in lines.items():
        collective, form, memory, ranks, offset, order = key
        found += not_monotone(key, times)
        plain = lines.get((collective, form, memory, ranks, 0, "up"))
        if plain is not None and offset != 0:
            found += slower(key, times, plain, UNALIGNED, f"at offset {offset}, aligned")
        if plain is not None and order != "up":
            found += slower(key, times, plain, ORDER, "in mixed order, in ascending order")
            found += slower(key, plain, times, ORDER, "in ascending order, in mixed order")
        if offset == 0 and order == "up":
            found += rank_steps(key, lines, cores)
            most = CROWDED_US.get(ranks)
            if collective == "alltoall" and ranks > cores and most is not None:
                time = times.get(CROWDED_BYTES, 0)
                if time > most:
                    found.append(f"{name(key)}: {CROWDED_BYTES} bytes take {time:.0f} us, "
                                 f"allowed {most:.0f}")
    return found


def variants(ranks, fewest):
    """(offset, order) of the jobs with so many ranks."""
    return [(0, "up"), (OFFSET, "up"), (0, "mixed")] if ranks == fewest else [(0, "up")]


def measure(case, all_ranks, sizes, seconds):
    collective, form, memory = case
    rows = []
    for ranks in all_ranks:
        for offset, order in variants(ranks, min(all_ranks)):
            ordered = list(sizes)
            if order == "mixed":
                random.Random(1).shuffle(ordered)
            arguments = [
                collective, "--form", form, "--memory", memory, "--peer", "none", "--offset",
                str(offset), "--sizes", ",".join(map(str, ordered)), "--seconds", str(seconds)]
            for row in jobs.run_ferry(ranks, arguments):
                rows.append({**row, "order": order})
    return rows


def best_of(*runs):
    """The smaller time of each row: what another program disturbed once is no cliff."""
    best = {}
    for row in (row for rows in runs for row in rows):
        key = tuple(row[k] for k in (
            "collective", "form", "memory", "ranks", "offset", "order", "bytes"))
        if key not in best or row["ferry_us_median"] < best[key]["ferry_us_median"]:
            best[key] = row
    return list(best.values())


def hunt(cases, all_ranks, cores, say, sizes=None, seconds=0.3, tries=3):
    """Measures every case; one with a violation again, at most `tries` times in all."""
    rows = []
    for number, case in enumerate(cases, 1):
        say(f"{number} of {len(cases)}: {', '.join(case)}")
        best = []
        for _ in range(tries):
            best = best_of(best, measure(case, all_ranks, sizes or SIZES, seconds))
            if not find(best, cores):
                break
        rows += best
    return rows
