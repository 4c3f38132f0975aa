#!/usr/bin/env python3
"""A table of instructions per activation by mechanism (`make count COUNT=--table`).

    instructions-by-mechanism.py NAME=PROFILE,ACTIVATIONS ...

PROFILE is callgrind's. Instructions count for the source file that they stem from, inlined or not.
Those of libraries and of files that all share count for the mechanisms of the function that they
are in, in proportion.
"""

import collections
import re
import sys

# The first pattern found in a file's path has it.
MECHANISMS = {
    "operations and channels": r"sim/src/tasks/|workload/src/",
    "the CPU that acts next": r"sim/src/(engine|hw/clock)\.rs",
    "choice of a CPU": r"/policy/|policy/csrc/|policy/src/|sched/wakeup\.rs|sim/src/together\.rs",
    "averages (PELT)": r"rq/pelt\.rs|sched/group_load\.rs",
    "load balancing": r"sched/(balance|balance_pass|balancer|imbalance|domains|sums)\.rs",
    "enqueue, pick, switch, publication": r"sim/src/(sched|rq)/",
    "speeds, end of an activity, accounting": r"hw/(cpu|clock_speed|speed)\.rs",
    "locks, cache lines, distances": r"hw/(contention|distance|hardware)\.rs",
    "idle states, interrupts, ticks": r"hw/(idle_loop|interrupts|governor)\.rs",
    "random variation of costs": r"chance\.rs|rand_xoshiro|random\.rs",
    "latency histogram and the rest": r"measured\.rs|hdrhistogram|latency\.rs",
}
SHARED = r"sim/src/(sim|ids)\.rs|policy/src/(array|ids|world)\.rs"
REST = "latency histogram and the rest"


def mechanism(path):
    if re.search(SHARED, path):
        return None
    found = (name for name, files in MECHANISMS.items() if re.search(files, path))
    return next(found, None)


def counted(profile):
    """Instructions by function and file, without those of what a function calls."""
    names, counts = {}, collections.defaultdict(collections.Counter)
    function = path = None
    of_callee = False
    for line in open(profile, errors="replace"):
        key, _, value = line.rstrip("\n").partition("=")
        if key in ("fn", "fl", "fi", "fe", "cfn", "cfi", "cfl"):
            number, _, name = value.partition(" ")
            kind = "fn" if key.endswith("fn") else "file"
            if name:
                names[kind, number] = name
            name = names[kind, number]
            if key == "fn":
                function = name
            elif not key.startswith("c"):
                path = name
        elif key == "calls":
            of_callee = True
        elif line[0] in "0123456789+-*":
            if not of_callee:
                counts[function][path] += int(line.split()[-1])
            of_callee = False
    return counts


def by_mechanism(profile):
    sums = collections.Counter()
    for files in counted(profile).values():
        own, shared = collections.Counter(), 0
        for path, count in files.items():
            name = mechanism(path)
            if name:
                own[name] += count
            else:
                shared += count
        if not own.total():
            own, shared = collections.Counter({REST: shared}), 0
        for name, count in own.items():
            sums[name] += count + shared * count / (own.total() or 1)
    return sums


def main():
    columns = []
    for argument in sys.argv[1:]:
        name, _, rest = argument.rpartition("=")
        profile, _, activations = rest.rpartition(",")
        sums = by_mechanism(profile)
        columns.append((name, {row: n / int(activations) for row, n in sums.items()}))
    print("| mechanism |", " | ".join(name for name, _ in columns), "|")
    print("|---|" + "---:|" * len(columns))
    rows = sorted(MECHANISMS, key=lambda row: -columns[0][1].get(row, 0) + 1e9 * (row == REST))
    for row in rows:
        print(f"| {row} |", " | ".join(f"{c.get(row, 0):,.0f}" for _, c in columns), "|")
    print("| all |", " | ".join(f"{sum(c.values()):,.0f}" for _, c in columns), "|")


if __name__ == "__main__":
    main()
