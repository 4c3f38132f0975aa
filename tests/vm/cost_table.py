#!/usr/bin/env python3
"""Reads what tests/vm/tests/cost.sh brought back from one or more boots, and prints what a
wakeup costs, in instructions.

What the kernel counts of a call is time under icount: what the statistics themselves cost
(the yardstick's empty program), and the program's instructions, each a little more than a
nanosecond, since now and then another CPU has its turn in the middle (the yardstick's
program of a thousand). Both are taken out.
"""

import argparse
import json
import os
import sys

YARDSTICK = "calibration"
THOUSAND = 1000
# The callbacks of a wakeup, in their order; whatever else ran is `other`.
COLUMNS = ("select_cpu", "runnable", "enqueue", "dispatch", "running", "stopping", "quiescent",
           "update_idle", "other")
# Nanoseconds of an instruction, at most: beyond, CPUs were interrupted all the time.
LONGEST = 1.3


class Bad(Exception):
    """Why there is no table."""


def read(directory, name, regime, suffix):
    with open(os.path.join(directory, f"{name}.{regime}.{suffix}"), encoding="utf-8") as file:
        return json.load(file)


def measured(directory, name, regime):
    """Of each program that ran: (calls, ns); and what the workload says."""
    before = {program["id"]: program for program in read(directory, name, regime, "before")}
    ran = {}
    for program in read(directory, name, regime, "after"):
        was = before.get(program["id"], {})
        calls, ns = (program.get(key, 0) - was.get(key, 0) for key in ("run_cnt", "run_time_ns"))
        if calls > 0:
            all_calls, all_ns = ran.get(program.get("name", "?"), (0, 0))
            ran[program.get("name", "?")] = (all_calls + calls, all_ns + ns)
    return ran, read(directory, name, regime, "wakeups")


def yardstick(directory, regime):
    """What the statistics cost per call, in ns, and how long an instruction is, in ns."""
    ran, _ = measured(directory, YARDSTICK, regime)
    if set(ran) != {"empty", "thousand"}:
        raise Bad(f"{directory}: the yardstick ran {sorted(ran)}")
    empty_ns, thousand_ns = (ran[key][1] / ran[key][0] for key in ("empty", "thousand"))
    length = (thousand_ns - empty_ns) / THOUSAND
    if not 0.99 <= length <= LONGEST:
        raise Bad(f"{directory}: {regime}: a thousand instructions took {length * THOUSAND:.0f} ns")
    return empty_ns, length


def column_of(program):
    """`bpfland_select_cpu` is of the column select_cpu."""
    for column in COLUMNS[:-1]:
        if program.endswith("_" + column):
            return column
    return "other"


def costs(directory, name, regime):
    """Instructions and calls per wakeup, by column, and the workload's own figures."""
    empty_ns, length = yardstick(directory, regime)
    ran, wakeups = measured(directory, name, regime)
    if abs(wakeups["kernel_wakeups"] / wakeups["wakeups"] - 1) > 0.05:
        raise Bad(f"{directory}: {name}: {wakeups['wakeups']} wakeups, and the kernel counted "
                  f"{wakeups['kernel_wakeups']}: others woke too")
    instructions, calls, programs = {}, {}, {}
    for program, (count, ns) in ran.items():
        column = column_of(program)
        cost = max(0.0, (ns - count * empty_ns) / length) / wakeups["wakeups"]
        instructions[column] = instructions.get(column, 0) + cost
        calls[column] = calls.get(column, 0) + count / wakeups["wakeups"]
        programs[program] = {"calls": count, "ns": ns, "instructions_per_wakeup": cost}
    return {
        "instructions_per_wakeup": sum(instructions.values()),
        "by_callback": instructions,
        "calls_per_wakeup": calls,
        "programs": programs,
        "statistics_ns_per_call": empty_ns,
        "instruction_ns": length,
        **wakeups,
    }


def table(results):
    """Lines: for each regime a row per scheduler, the totals of all boots beside each other."""
    lines = []
    for regime in results["regimes"]:
        rows = [row for row in results["rows"] if row["regime"] == regime]
        used = [column for column in COLUMNS
                if any(column in boot["by_callback"] for row in rows for boot in row["boots"])]
        first = rows[0]["boots"][0]
        lines += ["", f"{regime}: {first['pairs']} pairs on {first['cpus']} CPUs, "
                  f"{first['idle_share'] * 100:.0f}% idle; instructions per wakeup",
                  "  ".join([f"{'scheduler':<16}", f"{'all':>6}", f"{'boots':>13}",
                             *(f"{column:>11}" for column in used)])]
        for row in rows:
            boots = row["boots"]
            mean = sum(boot["instructions_per_wakeup"] for boot in boots) / len(boots)
            each = " ".join(f"{boot['instructions_per_wakeup']:.0f}" for boot in boots)
            cells = [sum(boot["by_callback"].get(column, 0) for boot in boots) / len(boots)
                     for column in used]
            lines.append("  ".join([f"{row['scheduler']:<16}", f"{mean:>6.0f}", f"{each:>13}",
                                    *(f"{cell:>11.0f}" for cell in cells)]))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boots", nargs="+", metavar="DIR")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--peers", default="", help="their versions, for the record")
    args = parser.parse_args()
    try:
        with open(os.path.join(args.boots[0], "order"), encoding="utf-8") as file:
            names = file.read().split()
        regimes = [name.split(".")[-2] for name in os.listdir(args.boots[0])
                   if name.startswith(YARDSTICK) and name.endswith(".wakeups")]
        results = {
            "peers": args.peers.split(),
            "regimes": sorted(regimes),
            "rows": [{"scheduler": name, "regime": regime,
                      "boots": [costs(boot, name, regime) for boot in args.boots]}
                     for regime in sorted(regimes) for name in names if name != YARDSTICK],
        }
    except (Bad, OSError, ValueError, KeyError, ZeroDivisionError) as why:
        print(f"cost: FAILED: {why}", file=sys.stderr)
        return 1
    print("\n".join(table(results)).lstrip("\n"))
    for boot in args.boots:
        said = "; ".join(
            "{0}: {1:.0f} ns per call, {2:.3f} ns per instruction".format(regime, *yardstick(boot, regime))
            for regime in results["regimes"])
        print(f"taken out, by the yardstick: {said}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
