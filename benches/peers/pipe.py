#!/usr/bin/env python3
"""Holds `reveille bench pipe` against `perf bench sched pipe`.

    benches/peers/pipe.py --original /usr/bin/perf --reveille target/release/reveille

Runs take turns. On CPU 0 both sides of a pair are stacked, and the two programs must agree.
With all CPUs the kernel stacks or spreads them, run by run, and the times differ by a factor:
these rows say what it did, and nothing is asked of them. Exits with 1 if a median is further
apart than the tolerance.
"""

import argparse
import subprocess
import sys

from interleave import interleave, ratio_table

TOLERANCE = 0.05
CASES = [("processes", []), ("threads", ["-T"])]
PLACES = [("CPU 0", ["taskset", "-c", "0"], TOLERANCE), ("all CPUs", [], None)]


def run(command):
    """A function that runs it and returns the time of a round trip in us."""
    def once():
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        times = [line for line in done.stdout.splitlines() if line.endswith("usecs/op")]
        return {"usecs/op": float(times[0].split()[0])}
    return once


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--original", required=True, help="perf")
    parser.add_argument("--reveille", required=True, help="the command, a release build")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each [7]")
    parser.add_argument("--loops", type=int, default=200_000, help="round trips of a run [200000]")
    args = parser.parse_args()
    good = True
    for where, prefix, tolerance in PLACES:
        for name, options in CASES:
            options = ["-l", str(args.loops), *options]
            print(f"{name}, {where}: pipe {' '.join(options)}")
            original = run([*prefix, args.original, "bench", "sched", "pipe", *options])
            reveille = run([*prefix, args.reveille, "bench", "pipe", *options])
            results = interleave(original, reveille, args.pairs)
            good &= ratio_table("original", "reveille", results, {"usecs/op": tolerance})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
