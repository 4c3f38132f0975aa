#!/usr/bin/env python3
"""Checks the JSON of `reveille study` or `reveille compare` against docs/json.md.

usage: check-result.py RESULT.json [--study STUDY.json]... [--loads 4,16] [--min-counted N]

RESULT.json is what the command printed with --json; of `study --all` it holds the results
of several studies. STUDY.json is what `reveille studies NAME --json` printed: the result
of that study must then have exactly the rows that the study asks for, with its published
figures. Exits 1 with every mistake that it finds.
"""

import argparse
import json
import math
import re
import sys

TOP = {
    "study", "mechanism", "machine", "topology", "cost_model", "machines", "base", "seed",
    "rows", "claims", "claim_score", "unpredicted", "score", "skill", "partial",
}
ALL = {"studies", "score", "skill", "claim_hits", "claims", "mechanisms"}
MECHANISM = {
    "mechanism", "studies", "hits", "counted", "pct", "skill", "claim_hits", "claims",
}
SKILL = {
    "changes", "hits", "null_hits", "big", "big_sign", "big_hits", "small", "small_quiet",
}
ROW = {
    "case", "machine", "base", "load", "variant", "repeats", "metric", "direction", "kind",
    "baseline", "candidate", "change_pct", "uncorrected_change_pct", "modes", "p_value", "significant", "identical",
    "published_change_pct",
    "published_baseline", "published_candidate", "published_unit", "published_of",
    "published_source", "ratio", "noise", "verdict", "tolerance",
    "track_record", "explain",
}
EXPLAIN = {
    "idle_pct", "idle_task_pct", "cost_pct", "ttwu_count_per_s", "ttwu_local_per_s",
    "ttwu_wake_remote_per_s", "wakeups_same_cpu_per_s", "wakeups_sibling_per_s",
    "wakeups_same_llc_per_s", "wakeups_remote_per_s", "idle_searches_per_s",
    "cpus_per_search", "search_efficiency_pct", "domain_efficiency_pct", "fast_path_pct",
    "search_success_pct", "lb_gained_newidle_per_s", "stacked_wakeups_per_s", "migrations_per_s",
    "ipis_per_s", "context_switches_per_s", "lock_wait_pct", "hot_line_wait_pct",
    "swqueue_append_wait_pct", "swqueue_remove_wait_pct", "swqueue_wait_busy_pct",
    "swqueue_pulls_per_s", "wakeup_p50_ns", "wakeup_p99_ns", "wakeup_max_ns",
}
OF_LIMITS_OR_CPUS = re.compile(r"\b(quota|period|burst|cpus)=")
CLAIM = {"kind", "claim", "published", "low", "high", "predicted", "verdict", "source"}
CLAIM_KINDS = {"peak", "onset", "fall", "between", "steadier"}

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
    too_few = [name for name in ("wakeup_p50_ns", "wakeup_p99_ns") if side[name] is None]
    for name, value in side.items():
        if name in too_few:
            continue
        if not check(is_number(value) and value >= 0, where, f"{name} = {value}"):
            return
        if name.endswith("_pct"):
            check(value <= 100.1, where, f"{name} = {value} is above 100%")
    both = side["idle_pct"] + side["cost_pct"]
    check(both <= 100.001, where, "idle and cost exceed all CPU time")
    # A run has enough wakeups for its median before it has enough for p99.
    check("wakeup_p50_ns" not in too_few or "wakeup_p99_ns" in too_few, where, "p99 and no p50")
    quantiles = [side[f"wakeup_{q}_ns"] for q in ("p50", "p99", "max")]
    quantiles = [ns for ns in quantiles if ns is not None]
    check(quantiles == sorted(quantiles), where, "quantiles of wakeup latency are out of order")
    wakeups = sum(v for n, v in side.items() if n.startswith("wakeups_"))
    # A stream's sender and receiver may keep each other busy.
    check(wakeups > 0 or side["context_switches_per_s"] == 0, where, "no wakeups")


def check_row(row, where):
    # Present only where it is true.
    too_few = row.pop("too_few", None)
    check(too_few in (None, True), where, f"too_few {too_few}")
    enough_ns = row.pop("enough_ns", None)
    counts = too_few and isinstance(enough_ns, int) and enough_ns > 0
    check(enough_ns is None or counts, where, f"enough_ns {enough_ns}")
    if not keys(row, ROW, where):
        return
    check(isinstance(row["load"], int) and row["load"] >= 1, where, f"load {row['load']}")
    check(row["kind"] in ("change", "side", "std", "runs", "interference"), where, f"kind {row['kind']}")
    check(row["direction"] in ("higher", "lower", "neither"), where, row["direction"])
    if too_few and row["published_source"] is None:
        figures = [row[side][key] for side in ("baseline", "candidate") for key in ("mean", "rel_std")]
        figures += [row["change_pct"], row["p_value"], row["modes"]]
        check(figures == [None] * 7, where, "a figure of too few samples")
        check_rest(row, where)
        return
    # What is better if higher is never 0, unless it is a share.
    may_be_0 = row["kind"] in ("std", "runs") or row["direction"] != "higher"
    least = 0 if may_be_0 or row["metric"].endswith("(%)") else 1e-9
    for side in ("baseline", "candidate"):
        if not keys(row[side], {"mean", "rel_std"}, f"{where} {side}"):
            return
        mean, rel_std = row[side]["mean"], row[side]["rel_std"]
        if not check(is_number(mean) and mean >= least, where, f"{side} mean {mean}"):
            return
        check(rel_std is None or (is_number(rel_std) and rel_std >= 0), where, f"spread {rel_std}")
    before, after = row["baseline"]["mean"], row["candidate"]["mean"]
    change = row["uncorrected_change_pct"]
    if row["direction"] == "lower":
        before, after = after, before
    if after == before:
        check(change == 0, where, f"change_pct {change} of no change")
    elif before == 0:
        check(change is None, where, f"change_pct {change} from nothing")
    else:
        expected = 100 * (after / before - 1)
        check(
            is_number(change) and abs(expected - change) < 1e-6 * max(1, abs(expected)),
            where, f"change_pct {change} is not {expected}",
        )
    check_correction(row, where)
    check_modes(row["modes"], where)
    p = row["p_value"]
    check(p is None or (is_number(p) and 0 <= p <= 1), where, f"p_value {p}")
    significant = p is not None and p < 0.05
    check(row["significant"] == significant, where, "significant does not follow from p_value")
    if row["identical"]:
        sides = [{"explain": row["explain"][side], **row[side]} for side in ("baseline", "candidate")]
        check(sides[0] == sides[1], where, "identical runs differ")
    check_rest(row, where)


def check_rest(row, where):
    """What a row has besides its figures."""
    check_published(row, where)
    check_track_record(row, where)
    if keys(row["explain"], {"baseline", "candidate"}, where):
        # Groups that share a fluid wake nobody.
        for side in ("baseline", "candidate") if row["kind"] != "interference" else ():
            check_explain(row["explain"][side], f"{where} explain.{side}")


def check_modes(modes, where):
    if modes is None or not keys(modes, {"baseline", "candidate", "changes"}, f"{where} modes"):
        return
    check(len(modes["baseline"]) + len(modes["candidate"]) > 2, where, "a single state")
    for side, key in (("baseline", "centre"), ("candidate", "centre"), ("changes", "change_pct")):
        values = [mode[key] for mode in modes[side] if mode[key] is not None]
        check(values == sorted(values), where, f"modes of {side} are out of order")
        check(0 < sum(mode["share"] for mode in modes[side]) < 1.000001, where, "shares of modes")


def check_skill(result, where):
    """Recounts what stands beside the score, where rows have one state."""
    skill = result["skill"]
    if not keys(skill, SKILL, where):
        return
    rows = [row for row in result["rows"] if row["verdict"] in ("hit", "miss")]
    rows = [row for row in rows if row["published_change_pct"] is not None]
    change = {id(row): 1 + row["published_change_pct"] / 100 for row in rows}
    big = [row for row in rows if change[id(row)] >= 1.1 or change[id(row)] <= 0.9]
    small = [row for row in rows if abs(math.log(change[id(row)])) < math.log(1.05)]
    hits = lambda rows: sum(row["verdict"] == "hit" for row in rows)
    expected = {"changes": len(rows), "hits": hits(rows), "big": len(big), "big_hits": hits(big),
                "small": len(small)}
    for key, value in expected.items():
        check(skill[key] == value, where, f"{key} {skill[key]} is not {value}")
    # A published change below 5% is a hit of "nothing changes", whatever its spread.
    check(len(small) <= skill["null_hits"] <= len(rows), where, "null_hits")
    check(skill["big_sign"] <= len(big) and skill["small_quiet"] <= len(small), where, "parts")
    if any(row["modes"] for row in rows):
        return
    predicted = {id(row): 1 + (row["change_pct"] or 0) / 100 for row in rows}
    quiet = sum(abs(math.log(max(predicted[id(row)], 1e-9))) < math.log(1.05) for row in small)
    check(skill["small_quiet"] == quiet, where, f"small_quiet is not {quiet}")


def check_correction(row, where):
    change, uncorrected = row["change_pct"], row["uncorrected_change_pct"]
    if change == uncorrected:
        return
    check(not OF_LIMITS_OR_CPUS.search(row["variant"]), where, "corrected by tables without such changes")
    sides = [row["explain"][side] for side in ("baseline", "candidate")]
    before, after = (side["migrations_per_s"] / side["ttwu_count_per_s"] for side in sides)
    why = f"corrected with migrations {before}, {after} and p {row['p_value']}"
    check(abs(after - before) >= 0.05 or (row["p_value"] or 0) >= 0.01, where, why)
    check(-50 < uncorrected < 100 and 0 < change / uncorrected < 1, where, f"{change} for {uncorrected}")


def check_track_record(row, where):
    record, change = row["track_record"], row["change_pct"]
    judged = row["kind"] == "change" and row["direction"] != "neither" and row["variant"] != ""
    # Nor of what explains a result.
    judged = judged and row["metric"].split()[0] not in EXPLAIN
    # Of changed limits and of fewer CPUs, the tables have no row, nor of a single repeat.
    judged = judged and row["p_value"] is not None
    if not judged or OF_LIMITS_OR_CPUS.search(row["variant"]) or change is None or change <= -100:
        check(record is None, where, "a track record of no prediction")
        return
    if not keys(record, {"rows", "hits", "null_hits", "low_pct", "high_pct", "misled"}, where):
        return
    check(record["rows"] >= max(record["hits"], record["null_hits"], 10), where, f"{record}")
    check(-100 < record["low_pct"] < record["high_pct"], where, f"{record}")
    large = not 1 / 1.05 < 1 + change / 100 < 1.05
    misled = large and record["hits"] < record["null_hits"]
    check(record["misled"] == misled, where, f"{record} of {change}")


def check_published(row, where):
    verdict, change = row["verdict"], row["change_pct"]
    check(verdict in (None, "hit", "miss", "informative"), where, f"verdict {verdict}")
    check(
        (verdict is None) == (row["published_source"] is None),
        where, "the source of a published figure and the verdict go together",
    )
    names = ("change_pct", "baseline", "candidate")
    figures = {name: row[f"published_{name}"] for name in names}
    given = {name for name, figure in figures.items() if figure is not None}
    if verdict is None:
        check(not given and row["ratio"] is None, where, "a figure without a source")
        return
    expected = {
        "change": ({"change_pct"}, set(names)),
        "std": (set(names),),
        "side": ({"baseline"}, {"candidate"}),
        "runs": ({"baseline"}, {"candidate"}),
        "interference": ({"baseline"}, {"candidate"}),
    }[row["kind"]]
    check(given in expected, where, f"published: {given} of a row of kind {row['kind']}")
    check((row["published_of"] is None) == (row["kind"] != "runs"), where, "published_of")
    if row["kind"] == "std":
        check(verdict == "informative", where, "a standard deviation never counts")
    single = row["modes"] is None
    if verdict == "hit" and row["kind"] == "change" and is_number(change) and single:
        wanted = math.log1p(figures["change_pct"] / 100)
        distance = abs(math.log1p(change / 100) - wanted)
        # Wider only by the source's own spread, which is at most 30% where a row counts.
        check(distance <= max(abs(wanted) / 2, 0.6), where, "no such distance is a hit")
    if row["kind"] == "interference":
        side = "baseline" if "baseline" in given else "candidate"
        rest, floor = (0, 1) if row["metric"].endswith("(% of periods)") else (0, 0.01)
        rest = 1 if "WCET] (periods)" in row["metric"] else rest
        published, predicted = figures[side] - rest, row[side]["mean"] - rest
        within = abs(predicted - published) <= max(0.25 * published, floor) + 1e-12
        check(verdict == ("hit" if within else "miss"), where, "verdict")
    if verdict in ("hit", "miss") and row["kind"] in ("side", "runs") and single:
        within = row["ratio"] is not None and 0.5 <= row["ratio"] <= 2
        check(within or verdict == "miss", where, "no such ratio is a hit")


def check_claim(claim, where):
    if not keys(claim, CLAIM, where):
        return
    check(claim["kind"] in CLAIM_KINDS, where, f"kind {claim['kind']}")
    low, high, predicted = claim["low"], claim["high"], claim["predicted"]
    check(claim["verdict"] in ("hit", "miss"), where, f"verdict {claim['verdict']}")
    if predicted is not None:
        agrees = (low is None or predicted >= low) and (high is None or predicted <= high)
        check(claim["verdict"] == ("hit" if agrees else "miss"), where, "verdict")


def check_result(result):
    if not keys(result, TOP, "result"):
        return
    check(result["partial"] is False, "result", "is partial")
    check(len(result["rows"]) > 0, "result", "has no rows")
    for number, row in enumerate(result["rows"]):
        check_row(row, f"row {number} ({row.get('case')} at {row.get('load')})")
    for number, claim in enumerate(result["claims"]):
        check_claim(claim, f"claim {number}")
    verdicts = [claim.get("verdict") for claim in result["claims"]]
    expected = {"hits": verdicts.count("hit"), "counted": len(verdicts)}
    check(result["claim_score"] == expected, "claim_score", f"is not {expected}")
    for number, item in enumerate(result["unpredicted"]):
        keys(item, {"what", "figures", "reason", "source"}, f"unpredicted {number}")
    verdicts = [row.get("verdict") for row in result["rows"]]
    hits = verdicts.count("hit")
    expected = {"hits": hits, "counted": hits + verdicts.count("miss")}
    check(result["score"] == expected, "score", f"{result['score']} is not {expected}")
    check_skill(result, "skill")


def check_against_study(result, study):
    for key in ("machine", "base", "mechanism"):
        check(result[key] == study[key], "result", f"{key} {result[key]} is not the study's")
    check(result["study"] == study["name"], "result", "is of another study")
    cases = study["cases"] + study["interference"]
    # Every metric of every load has a row of means, and at most one more for each side.
    wanted = {
        (case["name"], case["machine"], case["base"], load, variant, metric["name"])
        for case in cases for load in case["loads"] for variant in case["variants"] or [""]
        for metric in case["metrics"]
    }
    means = [row for row in result["rows"] if row["kind"] not in ("std", "runs")]
    found = {
        (row["case"], row["machine"], row["base"], row["load"], row["variant"], row["metric"])
        for row in means
    }
    check(found == wanted, "rows", f"are not those of the study: {found ^ wanted}")
    kinds = {"pair": "change"}
    published = [
        (case["name"], p["load"], p["variant"], kinds.get(p["kind"], p["kind"]),
         p["base"], p["variant_value"], p["source"])
        for case in cases for p in case["published"]
    ]
    shown = [
        (row["case"], row["load"], row["variant"], row["kind"],
         row["published_baseline"], row["published_candidate"], row["published_source"])
        for row in result["rows"] if row["verdict"] is not None
    ]
    check(
        sorted(shown, key=repr) == sorted(published, key=repr),
        "rows", "do not show the study's published figures",
    )
    check(len(result["claims"]) == len(study["claims"]), "claims", "are not as many as the study's")
    check(result["unpredicted"] == study["unpredicted"], "unpredicted", "is not the study's")


def check_all(result):
    """Scores of several studies; their results are checked one by one."""
    if not keys(result, ALL, "result"):
        return
    sums = {"hits": 0, "counted": 0}
    for mechanism in result["mechanisms"]:
        if keys(mechanism, MECHANISM, "mechanisms"):
            for key in sums:
                sums[key] += mechanism[key]
    for key, value in sums.items():
        check(result["score"][key] == value, "score", f"{key} is not {value}")
        of_studies = sum(study["score"][key] for study in result["studies"])
        check(of_studies == value, "score", f"{key} of studies is not {value}")
    for key in SKILL:
        parts = sum(mechanism["skill"][key] for mechanism in result["mechanisms"])
        check(result["skill"][key] == parts, "skill", f"{key} is not {parts}")
    named = [name for m in result["mechanisms"] for name in m["studies"]]
    check(
        sorted(named) == sorted(study["study"] for study in result["studies"]),
        "mechanisms", "do not name every study once",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("result")
    parser.add_argument("--study", action="append", default=[])
    parser.add_argument("--loads")
    parser.add_argument("--min-counted", type=int, default=0)
    args = parser.parse_args()
    with open(args.result, encoding="utf-8") as file:
        result = json.load(file)
    check(isinstance(result.pop("version", None), str), "result", "has no version")
    results = result["studies"] if "studies" in result else [result]
    for one in results:
        check_result(one)
    if "studies" in result and not mistakes:
        check_all(result)
    for path in args.study if not mistakes else []:
        with open(path, encoding="utf-8") as file:
            study = json.load(file)["study"]
        of_study = [one for one in results if one["study"] == study["name"]]
        if check(len(of_study) == 1, study["name"], "has not one result"):
            check_against_study(of_study[0], study)
    rows = [row for one in results for row in one["rows"]]
    if args.loads and not mistakes:
        loads = [int(load) for load in args.loads.split(",")]
        found = [row["load"] for row in rows]
        check(found == loads, "rows", f"loads {found} are not {loads}")
    score = {key: sum(one["score"][key] for one in results) for key in ("hits", "counted")}
    if not mistakes:
        counted, least = score["counted"], args.min_counted
        check(counted >= least, "score", f"{counted} counted rows; at least {least} are expected")
    for mistake in mistakes:
        print(f"{args.result}: {mistake}", file=sys.stderr)
    if not mistakes:
        hits = f"{score['hits']} of {score['counted']} counted hit"
        print(f"  {len(rows)} rows as documented, {hits}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
