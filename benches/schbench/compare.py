#!/usr/bin/env python3
"""Holds `reveille bench schbench` against the original, run by turns on this host.

    benches/schbench/compare.py --original PATH --reveille target/release/reveille
                              [--pairs 7] [--seconds 5]

Exit code 1 if p50 differs by more than 10%, p99 by more than 25%, or RPS by more than 3%.
The host should be quiet. Latencies below 10 us are shown and not judged: the unit of both
programs is 1 us.
"""

import argparse
import json
import re
import subprocess
import sys

from interleave import interleave, ratio_table

P50, P99, RPS = 0.10, 0.25, 0.03
# Below this a microsecond is more than the tolerance.
COARSE_US = 10

OPTIONS = [
    "-m 1 -t 2",
    "-m 1 -t 2 -R 100",
    "-p 4096 -m 1 -t 1",
    "-L -n 0 -m 1 -t 2",
]


def runner(program, options, seconds):
    """A run of `program`: percentiles from its JSON, its rate from its last lines."""
    command = [*program, *options.split(), "-r", str(seconds), "-i", str(seconds + 1), "-j", "-"]

    def run():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        values = json.loads(done.stdout)["int"]
        result = {
            f"{what} {name} (us)": values[f"{what}_latency_pct{percent}"]
            for what in ("wakeup", "request") if f"{what}_latency_min" in values
            for name, percent in (("p50", "50.0"), ("p99", "99.0"))
        }
        # The last: reports during the run come before.
        rate = re.findall(r"(?:average rps|avg worker transfer): ([0-9.]+)", done.stderr)
        if not rate:
            sys.exit(f"{' '.join(command)}: no rate in\n{done.stderr}")
        result["rate (/s)"] = float(rate[-1])
        return result

    return run


def tolerances(options, results):
    """What is asked of each metric."""
    asked = {}
    for metric in results[0][0]:
        if metric.startswith("rate"):
            asked[metric] = RPS
        elif "-R" in options.split() and metric.startswith("wakeup"):
            # A wakeup or two per second; the original measures them from the last request
            # that was sent before the worker ran, and not from the one that woke it.
            asked[metric] = None
        elif min(min(a[metric], b[metric]) for a, b in results) < COARSE_US:
            asked[metric] = None
        else:
            asked[metric] = P50 if "p50" in metric else P99
    return asked


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--original", required=True, help="schbench, built from its source")
    parser.add_argument("--reveille", required=True, help="the reveille command, release build")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=5)
    args = parser.parse_args()
    good = True
    for options in OPTIONS:
        print(f"schbench {options}, {args.pairs} pairs of {args.seconds} s")
        results = interleave(
            runner([args.original], options, args.seconds),
            runner([args.reveille, "bench", "schbench"], options, args.seconds),
            args.pairs,
        )
        good &= ratio_table("schbench", "reveille", results, tolerances(options, results))
        print()
    print("all within tolerance" if good else "NOT all within tolerance")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
