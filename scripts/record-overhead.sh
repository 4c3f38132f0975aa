#!/bin/sh
# What `reveille record` costs, on this host: records groups with some 100, 1,000 and
# 10,000 activations a second in each way, and shows the overhead that it states. Wants root
# and a cgroup v1 hierarchy or v2 with the cpu controller.
#
#   scripts/record-overhead.sh [target/debug/reveille] [SECONDS]
set -eu
reveille=${1:-target/debug/reveille}
seconds=${2:-10}
work=$(mktemp -d)
name=reveille-overhead-$$
if [ -d /sys/fs/cgroup/cpu ]; then
	groups="/sys/fs/cgroup/cpu/$name /sys/fs/cgroup/cpuacct/$name"
else
	groups=/sys/fs/cgroup/$name
fi
loads=
cleanup() {
	for load in $loads; do kill "$load" 2>/dev/null && wait "$load" 2>/dev/null || true; done
	for group in $groups; do rmdir "$group" 2>/dev/null || true; done
	rm -r "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
for group in $groups; do mkdir "$group"; done

# Ten processes that compute for a moment and sleep, so many times a second in all.
cat >"$work/load.py" <<'PYTHON'
import os, sys, time
for group in sys.argv[3:]:
    open(group + "/cgroup.procs", "w").write(str(os.getpid()))
gap, work = 1 / float(sys.argv[1]), float(sys.argv[2])
at = time.monotonic()
while True:
    end = time.monotonic() + work
    while time.monotonic() < end:
        pass
    at = max(at + gap, time.monotonic())
    time.sleep(max(0, at - time.monotonic()))
PYTHON

echo "| activations/s | way | demands | recorder | events | events/s | ns each | in all |"
echo "|---|---|---|---|---|---|---|---|"
for rate in 100 1000 10000; do
	loads=
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		# shellcheck disable=SC2086
		python3 "$work/load.py" $((rate / 10)) 0.00002 $groups &
		loads="$loads $!"
	done
	# Python takes a while to start.
	while [ "$(wc -l <"${groups%% *}/cgroup.procs")" -lt 10 ]; do sleep 0.1; done
	sleep 0.5
	for way in trace sample; do
		"$reveille" usage record --cgroup "$name" -o "$work/usage.parquet" --force \
			--for "${seconds}s" --how "$way" --json >"$work/summary.json"
		python3 - "$rate" "$way" "$work/summary.json" <<'PYTHON'
import json, sys
rate, way, file = sys.argv[1:]
shown = json.load(open(file))
usage, cost = shown["usage"], shown["cost"]
span = cost["span_ns"]
print("| %s | %s | %d | %.2f%% | %.2f%% | %d | %s | %.2f%% |" % (
    f"{int(rate):,}", way, usage["demands"], 100 * cost["recorder_ns"] / span,
    100 * cost["events"] * (cost["event_ns"] or 0) / span, cost["events"] * 1e9 / span,
    "%.0f" % cost["event_ns"] if cost["event_ns"] is not None else "–",
    100 * shown["overhead_cpus"]))
PYTHON
	done
	for load in $loads; do kill "$load"; wait "$load" 2>/dev/null || true; done
	loads=
done
