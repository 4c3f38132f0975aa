#!/usr/bin/env bash
# From a machine to a comparison as a user would: lstopo writes XML of this host and of a
# synthetic machine, and `reveille compare` runs on both and on `host`.
set -eu

reveille=${1:-target/release/reveille}
here=$(dirname "${BASH_SOURCE[0]}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# compare MACHINE: short runs at two loads must succeed and print documented JSON.
compare() {
    "$reveille" compare --machine "$1" --workload context_switch1 --load 4,16 \
        --base v6.2 --with +SIS_SHORT --repeats 2 --warmup 10ms --duration 5ms \
        --json >"$dir/result.json"
    python3 "$here/check-result.py" "$dir/result.json" --loads 4,16
}

echo "compare: host"
compare host

if ! "$here/need.sh" lstopo; then
    cat >&2 <<'SKIPPED'

*** SKIPPED: hwloc XML end to end.
*** lstopo is missing and could not be installed (see above). Reading of hwloc XML was tested
*** on the files in crates/machine/tests/data only.

SKIPPED
    exit 0
fi

echo "compare: XML of this host by $(lstopo --version | head -n 1)"
lstopo --of xml >"$dir/this-host.xml" </dev/null
compare "$dir/this-host.xml"

echo "compare: XML of a synthetic machine, 2 packages x 8 cores x 2 threads"
lstopo -i "pack:2 l3:1 core:8 pu:2" --of xml >"$dir/synthetic.xml" 2>/dev/null </dev/null
compare "$dir/synthetic.xml"
"$reveille" machines "$dir/synthetic.xml" --json >"$dir/machine.json"
python3 - "$dir/machine.json" <<'CHECK'
import json, sys

topology = json.load(open(sys.argv[1], encoding="utf-8"))["machine"]["topology"]
found = {key: topology[key] for key in ("sockets", "llcs", "cores", "cpus")}
wanted = {"sockets": 2, "llcs": 2, "cores": 16, "cpus": 32}
sys.exit(None if found == wanted else f"synthetic machine read as {found}, not {wanted}")
CHECK
echo "  $(grep -o '"text": "[^"]*"' "$dir/machine.json" | head -n 1 | cut -d'"' -f4)"
