# SPDX-License-Identifier: MIT
"""What Ferry wants to reach on CPUs, and which rows of a run miss it."""

K, M = 1 << 10, 1 << 20
END = 1 << 62

# Two ranks on cores of their own: (memory, peer, smallest, largest, the peer's time over Ferry's).
RATIOS = [
    ("shared", "mpi", 0, 2 * K, 4.0), ("shared", "mpi", 8 * K, 32 * K, 10.0),
    ("shared", "mpi", 128 * K, 128 * K, 4.0), ("shared", "mpi", 512 * K, 2 * M, 2.2),
    ("shared", "mpi", 8 * M, END, 1.8),
    ("private", "mpi", 0, 2 * K, 3.5), ("private", "mpi", 8 * K, 32 * K, 4.0),
    ("private", "mpi", 128 * K, 128 * K, 1.3), ("private", "mpi", 512 * K, END, 1.0),
    ("shared", "tuned", 0, 2 * K, 3.5), ("shared", "tuned", 8 * K, 128 * K, 4.5),
    ("shared", "tuned", 512 * K, 2 * M, 2.2), ("private", "tuned", 8 * K, 32 * K, 2.0),
]
# (memory, smallest, largest, Ferry's time over that of the bare copies at most).
LIMITS = [("shared", 512 * K, 2 * M, 1.05), ("shared", 8 * M, END, 1.1)]
# A root of small broadcasts runs ahead in Open MPI.
SMALL_BCAST = ("openmpi", 512, 2.0)
# More ranks than cores: small alltoall in microseconds at most, by ranks; and never behind anyone.
CROWDED_US = {4: 15.0, 8: 100.0}
CROWDED_SMALL = 2 * K
CROWDED_RATIO = 1.0


def demands(row, cores):
    """(what, measured, wanted, good) of one combined row."""
    bytes_, memory, ranks = row["bytes"], row["memory"], row["ranks"]
    found = []

    def at_least(peer, wanted):
        ratio = row["ratios"].get(peer)
        if ratio is not None:
            found.append((f"{peer} / Ferry", ratio, f">= {wanted:g}", ratio >= wanted))

    if ranks > cores:
        if row["collective"] == "alltoall" and bytes_ <= CROWDED_SMALL and ranks in CROWDED_US:
            most = CROWDED_US[ranks]
            found.append(("us", row["ferry_us"], f"<= {most:g}", row["ferry_us"] <= most))
        for peer in row["ratios"]:
            at_least(peer, CROWDED_RATIO)
        return found
    for where, peer, low, high, wanted in RATIOS:
        if where == memory and low <= bytes_ <= high:
            at_least(peer, wanted)
    for where, low, high, most in LIMITS:
        over = row["over_limit"]
        if where == memory and low <= bytes_ <= high and over is not None:
            found.append(("Ferry / memcpy", over, f"<= {most:g}", over <= most))
    peer, largest, wanted = SMALL_BCAST
    if row["collective"] == "bcast" and bytes_ <= largest:
        at_least(peer, wanted)
    return found


def combine(rows):
    """One row for each case, with the ratios to all peers. Ferry's time is that beside the first."""
    cases = {}
    for row in rows:
        key = (row["ranks"], row["collective"], row["memory"], row["form"], row["bytes"])
        case = cases.setdefault(key, {
            "ranks": row["ranks"], "collective": row["collective"], "memory": row["memory"],
            "form": row["form"], "bytes": row["bytes"], "ferry_us": row["ferry_us_median"],
            "limit_us": row.get("limit_us_median"), "over_limit": row.get("over_limit"),
            "path": row["path"], "ratios": {}, "peer_us": {}, "errors": 0})
        case["ratios"][row["peer"]] = row["ratio"]
        case["peer_us"][row["peer"]] = row["peer_us_median"]
        case["errors"] += row.get("errors") or 0
    return list(cases.values())


def size_text(bytes_):
    for unit, name in ((M, "M"), (K, "K")):
        if bytes_ >= unit and bytes_ % unit == 0:
            return f"{bytes_ // unit} {name}"
    return str(bytes_)


def number(value):
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def markdown(rows, cores, facts):
    """The whole table; a row that misses says what. Also how many rows miss."""
    cases = combine(rows)
    peers = [peer for peer in ("mpi", "tuned", "openmpi") if any(peer in c["ratios"] for c in cases)]
    lines = [f"{name}: {value}" for name, value in facts.items()]
    lines += ["", "Times in microseconds, medians. `mpi x` is the time of that peer over Ferry's.", ""]
    missed = 0
    group = None
    for case in cases:
        title = (case["ranks"], case["collective"], case["memory"], case["form"])
        if title != group:
            group = title
            crowded = f" on {cores} cores" if case["ranks"] > cores else ""
            lines += ["", f"**{title[0]} ranks{crowded}, {title[1]}, {title[2]} memory, {title[3]}**",
                      "", "| bytes | Ferry | " + " | ".join(f"{p} | {p} x" for p in peers) +
                      " | memcpy | x memcpy | path | missed |",
                      "|" + "---|" * (6 + 2 * len(peers))]
        wrong = [f"{what} {measured:.2f}, wanted {wanted}"
                 for what, measured, wanted, good in demands(case, cores) if not good]
        if case["errors"]:
            wrong.insert(0, f"{case['errors']} wrong bytes")
        missed += bool(wrong)
        cells = [size_text(case["bytes"]), number(case["ferry_us"])]
        for peer in peers:
            cells += [number(case["peer_us"].get(peer)), number(case["ratios"].get(peer))]
        # Below that a call is no matter of copying.
        over = case["over_limit"] if case["bytes"] >= 32 * K else None
        cells += [number(case["limit_us"]), number(over), case["path"],
                  "**" + "; ".join(wrong) + "**" if wrong else ""]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"{missed} of {len(cases)} rows miss a target."]
    return "\n".join(lines) + "\n", missed
