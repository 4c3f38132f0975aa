"""Compares two programs by runs that take turns, so that both see the same noise.

    results = interleave(run_a, run_b, pairs=7)
    ok = ratio_table("schbench", "reveille", results, {"p50 (us)": 0.10})

A run is a function without arguments that returns {metric: number}. Times and rates are
treated alike: what counts is the ratio of the medians, with a bootstrap interval over pairs.
"""

import random
import statistics

BOOTSTRAPS = 2000
CONFIDENCE = 0.95


def interleave(run_a, run_b, pairs):
    """Runs both `pairs` times, each pair in the other order than the one before it.

    Returns [(result of a, result of b)], one for each pair.
    """
    results = []
    for pair in range(pairs):
        if pair % 2 == 0:
            a = run_a()
            b = run_b()
        else:
            b = run_b()
            a = run_a()
        results.append((a, b))
    return results


def ratio(pairs):
    """median(b) / median(a) of [(a, b)]; infinite if a's median alone is 0."""
    a = statistics.median(a for a, _ in pairs)
    b = statistics.median(b for _, b in pairs)
    if a == 0:
        return 1.0 if b == 0 else float("inf")
    return b / a


def interval(pairs):
    """Bootstrap interval of `ratio`: pairs drawn anew, always the same ones."""
    draw = random.Random(1)
    ratios = sorted(ratio(draw.choices(pairs, k=len(pairs))) for _ in range(BOOTSTRAPS))
    cut = int(BOOTSTRAPS * (1 - CONFIDENCE) / 2)
    return ratios[cut], ratios[-1 - cut]


def ratio_table(name_a, name_b, results, tolerances):
    """Prints a row for each metric of `tolerances`: medians, ratio b/a, its interval.

    A metric is within its tolerance t (0.10: 10%) if the ratio lies in 1/(1+t) .. 1+t. If it
    does not, but part of its interval does, these pairs cannot tell: "unsure", for more
    pairs or a quieter machine. None as tolerance shows the metric and asks nothing of it.
    Returns whether all are within.
    """
    width = max(len(metric) for metric in tolerances)
    print(f"  {'':{width}}  {name_a:>12}  {name_b:>12}  ratio  interval        within")
    good = True
    for metric, tolerance in tolerances.items():
        pairs = [(a[metric], b[metric]) for a, b in results]
        middle = ratio(pairs)
        low, high = interval(pairs)
        verdict = "-"
        if tolerance is not None:
            least, most = 1 / (1 + tolerance), 1 + tolerance
            within = least <= middle <= most
            unsure = low <= most and high >= least
            good = good and within
            verdict = f"{'yes' if within else 'unsure' if unsure else 'NO'} ({tolerance:.0%})"
        a, b = (statistics.median(side) for side in zip(*pairs))
        print(f"  {metric:{width}}  {a:12.2f}  {b:12.2f}  {middle:5.3f}  "
              f"{low:5.3f} .. {high:5.3f}  {verdict}")
    return good
