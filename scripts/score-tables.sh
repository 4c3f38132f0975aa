#!/usr/bin/env bash
# Predicts the published tables under tables/, which no constant is set by, and prints hits
# beside those of "no change": score-tables.sh [REVEILLE [TABLE…]]. All of them take some
# 15 minutes of CPU. Writes target/tables/NAME.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
[ $# -gt 0 ] && shift
tables=("$@")
[ $# -gt 0 ] || tables=(tables/*.toml)
out=target/tables
mkdir -p "$out"
for table in "${tables[@]}"; do
    name=$(basename "$table" .toml)
    echo "$name" >&2
    "$reveille" study "$table" --json >"$out/$name.json"
done

python3 - "${tables[@]/#/$out/}" <<'SCORE'
import json, os, sys

KEYS = ["changes", "hits", "null_hits", "big", "big_sign", "big_hits", "small", "small_quiet"]
HEADS = ["rows", "hits", "no change", "big", "sign", "hits", "small", "quiet"]


def line(name, figures):
    print(name.ljust(24), *(str(f).rjust(len(h) + 2) for f, h in zip(figures, HEADS)))


line("table", HEADS)
total = dict.fromkeys(KEYS, 0)
for path in sys.argv[1:]:
    name = os.path.basename(path).removesuffix(".toml")
    with open(f"target/tables/{name}.json", encoding="utf-8") as file:
        skill = json.load(file)["skill"]
    for key in KEYS:
        total[key] += skill[key]
    line(name, [skill[k] for k in KEYS])
line("all", [total[k] for k in KEYS])
SCORE
