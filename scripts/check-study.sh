#!/usr/bin/env bash
# Runs every study of the catalogue that only simulates, one repeat each, with the built command.
# Checks the JSON (documented shape, a row for every load of every case, published figures,
# scores), then the page and the record of fidelity. The number of hits is a result, not a test.
set -eu

reveille=${1:-target/release/reveille}
here=$(dirname "${BASH_SOURCE[0]}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo "study: every study of the catalogue, one repeat of every row"
"$reveille" studies --json >"$dir/names.json"
studies=()
for name in $(python3 -c 'import json, sys
for study in json.load(open(sys.argv[1]))["studies"]:
    # The study of absolute figures has no mechanism and its own command: study --baselines.
    if study["on"] == "sim" and study["mechanism"]: print(study["name"])' "$dir/names.json"); do
    "$reveille" studies "$name" --json >"$dir/study-$name.json"
    studies+=(--study "$dir/study-$name.json")
done
"$reveille" study --all --repeats 1 --json --html "$dir/report.html" \
    --fidelity "$dir/fidelity.md" >"$dir/result.json"
python3 "$here/check-result.py" "$dir/result.json" "${studies[@]}" --min-counted 11

# One complete page without network access.
tail -n 1 "$dir/report.html" | grep -q '</html>' || { echo "the page is truncated: no </html>" >&2; exit 1; }
if grep -nE '(src|href)="?(https?:)?//|@import|url\(["'\'']?https?:' "$dir/report.html" >&2; then
    echo "the page refers to the network" >&2
    exit 1
fi
echo "  page of $(wc -c <"$dir/report.html") bytes, no reference to a network"

for name in "${studies[@]}"; do
    [ "$name" = --study ] && continue
    name=${name##*/study-}
    grep -qx "## ${name%.json}" "$dir/fidelity.md" || { echo "no ${name%.json} in the record" >&2; exit 1; }
done
echo "  record of fidelity of $(wc -l <"$dir/fidelity.md") lines, with every study"
