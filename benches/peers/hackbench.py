#!/usr/bin/env python3
"""Holds `reveille bench hackbench` against hackbench of rt-tests 2.x.

    benches/peers/hackbench.py --original /usr/bin/hackbench --reveille target/release/reveille

Runs take turns, with both free to use all CPUs and with both on CPU 0, since a pair that is
stacked on a CPU and one that is spread are two different cases. What counts is `Time:`.
Exits with 1 if a median is further apart than the tolerance.
"""

import argparse
import subprocess
import sys

from interleave import interleave, ratio_table

TOLERANCE = 0.05
CASES = [
    ("sockets, processes", ["-g", "4", "-l", "1000"]),
    ("pipes, processes", ["-g", "4", "-l", "1000", "-p"]),
    ("pipes, threads", ["-g", "4", "-l", "1000", "-p", "-T"]),
    ("sockets, threads", ["-g", "4", "-l", "1000", "-T"]),
    ("TCP, processes", ["-g", "1", "-l", "300", "-i"]),
    ("the default", []),
]


def run(command):
    """A function that runs it and returns the time in ms."""
    def once():
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        times = [line for line in done.stdout.splitlines() if line.startswith("Time: ")]
        return {"time (ms)": 1000 * float(times[0].split()[1])}
    return once


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--original", required=True, help="hackbench of rt-tests")
    parser.add_argument("--reveille", required=True, help="the command, a release build")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each [7]")
    args = parser.parse_args()
    good = True
    for where, prefix in [("all CPUs", []), ("CPU 0", ["taskset", "-c", "0"])]:
        for name, options in CASES:
            print(f"{name}, {where}: hackbench {' '.join(options)}")
            original = run([*prefix, args.original, *options])
            reveille = run([*prefix, args.reveille, "bench", "hackbench", *options])
            results = interleave(original, reveille, args.pairs)
            good &= ratio_table("original", "reveille", results, {"time (ms)": TOLERANCE})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
