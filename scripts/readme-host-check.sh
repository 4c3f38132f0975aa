#!/usr/bin/env bash
# Writes the <!-- host-check --> block of docs/results.md: calibrates this host, runs the study
# host-check with the result, and shows every row. Needs a quiet host and about five minutes. Build
# first.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$reveille" calibrate -o "$dir/host.toml" >/dev/null
"$reveille" study host-check --machine "$dir/host.toml" --json >"$dir/agreement.json"

python3 - "$dir/agreement.json" docs/results.md <<'WRITE'
import json, os, re, sys, textwrap

agreement_path, page_path = sys.argv[1:]
with open(agreement_path, encoding="utf-8") as file:
    agreement = json.load(file)


def number(x, unit):
    if x is None:
        return "–"
    if unit == "ns":
        for scale, name in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")]:
            if abs(x) >= scale:
                return f"{x / scale:.3g} {name}"
    for scale, name in [(1e9, "G"), (1e6, "M"), (1e3, "k")]:
        if abs(x) >= scale:
            return f"{x / scale:.3g}{name}"
    return f"{x:.3g}"


def cell(spread, unit):
    if spread.get("too_few"):
        return "too few"
    if len(spread["modes"]) > 1:
        return " or ".join(f"{number(m['centre'], unit)} ({m['share']:.0%})" for m in spread["modes"])
    return f"{number(spread['median'], unit)} [{number(spread['min'], unit)}..{number(spread['max'], unit)}]"


def row(r):
    name, _, unit = r["metric"].rpartition(" (")
    unit = unit.rstrip(")")
    if r["kind"] == "runs":
        sides = [f"{r[w]['above']} of {r[w]['of']} runs" for w in ("predicted_runs", "measured_runs")]
    elif r["kind"] == "change":
        sides = [f"{r[w]:+.1f}%" if r[w] is not None else "–"
                 for w in ("predicted_change_pct", "measured_change_pct")]
    else:
        sides = [cell(r["predicted"], unit), cell(r["measured"], unit)]
    ratio = f"{r['ratio']:.2f}" if r["ratio"] is not None else "–"
    verdict = {"hit": "hit", "miss": "**miss**", "informative": "info"}[r["verdict"]]
    cells = [r["case"], str(r["load"]), r["variant"] or "–", name, *sides, ratio, verdict]
    return "| " + " | ".join(cells) + " |"


host, score = agreement["host"], agreement["score"]
guest = f"a guest of {host['virtualisation']}" if host["virtualisation"] else "no virtual machine"
head = (f"**{score['hits']} of {score['counted']} rows hit.** Linux {host['kernel'].split('-')[0]} on "
        f"{host['cpus']} CPUs, {guest}, predicted as {agreement['base']} with costs calibrated just "
        "before. Figures are medians with the range of the repeats, or the modes they form.")
lines = [*textwrap.wrap(head, 92, break_on_hyphens=False), "",
         "| case | load | variant | metric | predicted | measured | ratio | |",
         "|---|---:|---|---|---:|---:|---:|---|",
         *map(row, agreement["rows"])]
with open(page_path, encoding="utf-8") as file:
    page = file.read()
begin, end = "<!-- host-check -->", "<!-- /host-check -->"
pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
assert pattern.search(page), f"{page_path} has no {begin}"
page = pattern.sub(lambda _: "\n".join([begin, *lines, end]), page)
with open(page_path + ".new", "w", encoding="utf-8") as file:
    file.write(page)
os.replace(page_path + ".new", page_path)
WRITE
