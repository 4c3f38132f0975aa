#!/usr/bin/env bash
# Predicts the published tables under tables/, which no constant is set by. Prints hits beside those
# of "no change", then big changes by size: score-tables.sh [REVEILLE [TABLE…]]. All of them take
# some 15 minutes of CPU. Writes target/tables/NAME.json and, after all of them, the track record that
# `compare` shows (scripts/track-record.py).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
[ $# -gt 0 ] && shift
tables=("$@")
[ $# -gt 0 ] || tables=(tables/*.toml) all=1
out=target/tables
mkdir -p "$out"
results=()
for table in "${tables[@]}"; do
    name=$(basename "$table" .toml)
    results+=("$out/$name.json")
    echo "$name" >&2
    "$reveille" study "$table" --json >"$out/$name.json"
done

python3 - "${tables[@]/#/$out/}" <<'SCORE'
import json, os, sys

KEYS = ["changes", "hits", "null_hits", "big", "big_sign", "big_hits", "small", "small_quiet"]
HEADS = ["rows", "hits", "no change", "big", "sign", "hits", "small", "quiet"]
SIZES = {"a factor of 2 or more": 2.0, "a factor of 1.4 to 2": 1.4, "10% to 40%": 0.0}


def line(name, figures):
    print(name.ljust(24), *(str(f).rjust(len(h) + 2) for f, h in zip(figures, HEADS)))


def right(row):
    """Is the direction right with half of all probability, as in the skill's `big_sign`?"""
    modes = row["modes"]["changes"] if row["modes"] else []
    modes = modes or [{"change_pct": row["change_pct"], "share": 1}]
    published = row["published_change_pct"]
    return sum(m["share"] for m in modes
               if abs(m["change_pct"]) >= 1 and (m["change_pct"] > 0) == (published > 0)) >= 0.5


line("table", HEADS)
total = dict.fromkeys(KEYS, 0)
sizes = {name: [0, 0, 0] for name in SIZES}
for path in sys.argv[1:]:
    name = os.path.basename(path).removesuffix(".toml")
    with open(f"target/tables/{name}.json", encoding="utf-8") as file:
        table = json.load(file)
    skill = table["skill"]
    for row in table["rows"]:
        published = row["published_change_pct"]
        if row["verdict"] not in ("hit", "miss") or published is None or abs(published) < 10:
            continue
        ratio = 1 + published / 100
        size = next(name for name, least in SIZES.items() if max(ratio, 1 / ratio) >= least)
        for i, counts in enumerate((True, right(row), row["verdict"] == "hit")):
            sizes[size][i] += counts
    for key in KEYS:
        total[key] += skill[key]
    line(name, [skill[k] for k in KEYS])
line("all", [total[k] for k in KEYS])
print()
line("published change", ["rows", "sign", "hits"])
for name, figures in sizes.items():
    line(name, figures)
SCORE
[ -z "${all:-}" ] || scripts/track-record.py "${results[@]}"
