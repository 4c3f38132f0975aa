#!/usr/bin/env python3
"""Checks the JSON of `reveille study` or `reveille compare` against docs/json.md.

usage: check-result.py RESULT.json [--study STUDY.json] [--loads 4,16] [--min-counted N]

RESULT.json is what the command printed with --json. STUDY.json is what
`reveille studies NAME --json` printed: the result must then have exactly the rows that
the study asks for, with its published figures. Exits 1 with every mistake that it finds.
"""

import argparse
import json
import math
import sys

TOP = {"study", "machine", "topology", "cost_model", "base", "rows", "claims", "score", "partial"}
ROW = {
    "case", "load", "variant", "metric", "baseline", "candidate", "change_pct", "p_value",
    "significant", "published_change_pct", "published_source", "verdict", "explain",
}
EXPLAIN = {
    "idle_pct", "idle_task_pct", "cost_pct", "wakeups_same_cpu_per_s", "wakeups_sibling_per_s",
    "wakeups_same_llc_per_s", "wakeups_remote_per_s", "idle_searches_per_s",
    "cpus_per_search", "search_success_pct", "stacked_wakeups_per_s", "migrations_per_s",
    "ipis_per_s", "context_switches_per_s", "lock_wait_pct", "hot_line_wait_pct",
    "swqueue_append_wait_pct", "swqueue_remove_wait_pct", "swqueue_wait_busy_pct",
    "swqueue_pulls_per_s", "wakeup_p50_ns", "wakeup_p99_ns", "wakeup_max_ns",
}
CLAIM = {"claim", "published", "predicted", "verdict", "source"}

mistakes = []


def check(holds, where, what):
    if not holds:
        mistakes.append(f"{where}: {what}")
    return holds


def keys(value, expected, where):
    found = set(value) if isinstance(value, dict) else set()
    differ = sorted(found ^ expected)
    return check(not differ, where, f"undocumented or missing keys: {', '.join(differ)}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def check_explain(side, where):
    if not keys(side, EXPLAIN, where):
        return
    for name, value in side.items():
        if not check(is_number(value) and value >= 0, where, f"{name} = {value}"):
            return
        if name.endswith("_pct"):
            check(value <= 100.1, where, f"{name} = {value} is above 100%")
    both = side["idle_pct"] + side["cost_pct"]
    check(both <= 100.001, where, "idle and cost exceed all CPU time")
    check(
        side["wakeup_p50_ns"] <= side["wakeup_p99_ns"] <= side["wakeup_max_ns"],
        where, "quantiles of wakeup latency are out of order",
    )
    wakeups = sum(v for n, v in side.items() if n.startswith("wakeups_"))
    check(wakeups > 0, where, "no wakeups")


def check_row(row, where):
    if not keys(row, ROW, where):
        return
    check(isinstance(row["load"], int) and row["load"] >= 1, where, f"load {row['load']}")
    for side in ("baseline", "candidate"):
        if not keys(row[side], {"mean", "rel_std"}, f"{where} {side}"):
            return
        mean, rel_std = row[side]["mean"], row[side]["rel_std"]
        if not check(is_number(mean) and mean > 0, where, f"{side} mean {mean}"):
            return
        check(is_number(rel_std) and rel_std >= 0, where, f"{side} spread {rel_std}")
    before, after = row["baseline"]["mean"], row["candidate"]["mean"]
    if row["metric"].endswith("/s)"):
        expected = 100 * (after / before - 1)
    else:
        expected = 100 * (before / after - 1)
    change = row["change_pct"]
    check(
        is_number(change) and abs(expected - change) < 1e-6 * max(1, abs(expected)),
        where, f"change_pct {change} is not {expected}",
    )
    p = row["p_value"]
    check(p is None or (is_number(p) and 0 <= p <= 1), where, f"p_value {p}")
    significant = p is not None and p < 0.05
    check(row["significant"] == significant, where, "significant does not follow from p_value")
    published = row["published_change_pct"]
    check(
        (published is None) == (row["verdict"] is None) == (row["published_source"] is None),
        where, "published figure, its source and the verdict go together",
    )
    verdict = row["verdict"]
    check(verdict in (None, "hit", "miss", "informative"), where, f"verdict {verdict}")
    if row["verdict"] == "hit" and is_number(change):
        wanted = math.log1p(published / 100)
        distance = abs(math.log1p(change / 100) - wanted)
        # Wider only by the source's own spread, which is at most 30% where a row counts.
        check(distance <= max(abs(wanted) / 2, 0.6), where, "no such distance is a hit")
    if keys(row["explain"], {"baseline", "candidate"}, where):
        for side in ("baseline", "candidate"):
            check_explain(row["explain"][side], f"{where} explain.{side}")


def check_result(result):
    if not keys(result, TOP, "result"):
        return
    check(result["partial"] is False, "result", "is partial")
    check(len(result["rows"]) > 0, "result", "has no rows")
    for number, row in enumerate(result["rows"]):
        check_row(row, f"row {number} ({row.get('case')} at {row.get('load')})")
    for number, claim in enumerate(result["claims"]):
        if keys(claim, CLAIM, f"claim {number}"):
            verdict = claim["verdict"]
            check(verdict in ("hit", "miss"), f"claim {number}", f"verdict {verdict}")
    verdicts = [row.get("verdict") for row in result["rows"]]
    hits = verdicts.count("hit")
    expected = {"hits": hits, "counted": hits + verdicts.count("miss")}
    check(result["score"] == expected, "score", f"{result['score']} is not {expected}")


def check_against_study(result, study):
    for key in ("machine", "base"):
        check(result[key] == study[key], "result", f"{key} {result[key]} is not the study's")
    check(result["study"] == study["name"], "result", "is of another study")
    wanted = [
        (case["name"], load, variant)
        for case in study["cases"] for load in case["loads"] for variant in study["variants"]
    ]
    found = [(row["case"], row["load"], row["variant"]) for row in result["rows"]]
    check(found == wanted, "rows", f"are not those of the study: {set(found) ^ set(wanted)}")
    published = {
        (case["name"], p["load"], p["variant"]): p["change_pct"]
        for case in study["cases"] for p in case["published"]
    }
    shown = {
        (row["case"], row["load"], row["variant"]): row["published_change_pct"]
        for row in result["rows"] if row["published_change_pct"] is not None
    }
    check(shown == published, "rows", "do not show the study's published figures")
    check(len(result["claims"]) == len(study["peaks"]), "claims", "are not as many as the study's")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("result")
    parser.add_argument("--study")
    parser.add_argument("--loads")
    parser.add_argument("--min-counted", type=int, default=0)
    args = parser.parse_args()
    with open(args.result, encoding="utf-8") as file:
        result = json.load(file)
    check_result(result)
    if args.study and not mistakes:
        with open(args.study, encoding="utf-8") as file:
            check_against_study(result, json.load(file)["study"])
    if args.loads and not mistakes:
        loads = [int(load) for load in args.loads.split(",")]
        found = [row["load"] for row in result["rows"]]
        check(found == loads, "rows", f"loads {found} are not {loads}")
    if not mistakes:
        counted = result["score"]["counted"]
        least = args.min_counted
        check(counted >= least, "score", f"{counted} counted rows; at least {least} are expected")
    for mistake in mistakes:
        print(f"{args.result}: {mistake}", file=sys.stderr)
    if not mistakes:
        rows, score = len(result["rows"]), result["score"]
        print(f"  {rows} rows as documented, {score['hits']} of {score['counted']} counted hit")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
