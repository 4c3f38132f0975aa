#!/usr/bin/env bash
# Runs the whole SIS_SHORT study once with the built command, and checks its JSON: the
# documented shape, a row for every load of every case, the published figures, the score.
# How many rows hit is a result and no test.
set -eu

reveille=${1:-target/release/reveille}
here=$(dirname "${BASH_SOURCE[0]}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo "study: sis-short, one repeat of every row"
"$reveille" studies sis-short --json >"$dir/study.json"
"$reveille" study sis-short --repeats 1 --json --html "$dir/report.html" >"$dir/result.json"
python3 "$here/check-result.py" "$dir/result.json" --study "$dir/study.json" --min-counted 11

# One page, whole, that asks nothing of a network.
tail -n 1 "$dir/report.html" | grep -q '</html>' || { echo "the page is not whole" >&2; exit 1; }
if grep -nE '(src|href)="?(https?:)?//|@import|url\(["'\'']?https?:' "$dir/report.html" >&2; then
    echo "the page refers to the network" >&2
    exit 1
fi
echo "  page of $(wc -c <"$dir/report.html") bytes, no reference to a network"
