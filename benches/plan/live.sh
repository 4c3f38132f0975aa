#!/bin/sh
# Does a plan from a live recording keep its goal on this kernel, and is there a cheaper
# setting that does? Records a live group, plans without head-room, and replays the recording in real groups:
# the recommended setting and, with 15% less CPU, the same period and burst and those of
# the alternatives.
# As root: benches/plan/live.sh [REVEILLE] [GOAL] [REPEATS]
set -eu
reveille=${1:-target/release/reveille}
goal=${2:-p99=15ms}
repeats=${3:-10}
dir=$(mktemp -d)
load=
trap '[ -z "$load" ] || kill "$load" 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

cat > "$dir/load.toml" <<'TOML'
name = "load"
about = "Three threads that sleep and compute at random"
load = "instances"

[[task]]
name = "worker"
count = 3
program = [{ sleep = "9ms", random = true }, { run = "1500us", random = true }, { count = 1 }]

[[metric]]
name = "throughput (1/s)"
throughput = true
TOML

# A group of its own, which recording finds by its directory; its limit is never reached.
"$reveille" compare --on host --workload "$dir/load.toml" --load 1 --with burst=0ms \
    --group quota=2s,period=1s,burst=1ms --repeats 1 --duration 30s > "$dir/load.txt" 2>&1 &
load=$!
group=
tries=0
while [ -z "$group" ]; do
    sleep 0.5
    tries=$((tries + 1))
    [ "$tries" -lt 40 ] || { cat "$dir/load.txt" >&2; exit 1; }
    group=$(find /sys/fs/cgroup -maxdepth 6 -type d -name "reveille-$load-*" 2>/dev/null | grep -v cpuacct | head -n 1)
done
sleep 2
"$reveille" usage record --cgroup "$group" -o "$dir/usage.parquet" --for 6s
kill "$load" && wait "$load" 2>/dev/null || true
load=

"$reveille" plan "$dir/usage.parquet" --for cgroup2 --goal "$goal" --headroom 0 --json > "$dir/plan.json"
# 15% less CPU: the recommended setting, and the alternatives' periods and bursts.
cheaper=$(python3 - "$dir/plan.json" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
best = plan["recommended"]["limits"]
cpus = 0.85 * best["quota_ns"] / best["period_ns"]
shapes = [best] + [other["shown"]["limits"] for other in plan["alternatives"]]
for shape in shapes:
    quota = int(cpus * shape["period_ns"] / 1000)
    burst = int(quota * shape["burst_ns"] / shape["quota_ns"])
    print(f"--try quota={quota}us,period={shape['period_ns'] // 1000}us,burst={burst}us")
PY
)
# shellcheck disable=SC2086
"$reveille" plan "$dir/usage.parquet" --for cgroup2 --goal "$goal" --headroom 0 --verify=recommended \
    --verify-repeats "$repeats" --json $cheaper > "$dir/tried.json"
python3 - "$dir/tried.json" "$goal" <<'PY'
import json, re, sys
tried = json.load(open(sys.argv[1]))
quantile, value, unit = re.fullmatch(r"p(99|50|90)[=<]([0-9.]+)(us|ms|s)", sys.argv[2]).groups()
limit = float(value) * {"us": 1e3, "ms": 1e6, "s": 1e9}[unit]
usage, control = tried["recording"], tried["verification"]["control"]
print(f"recorded: {usage['demands']} pieces of work, {usage['mean_cpus']:.3f} CPUs on average")
name = f"p{quantile}_ns"
print(f"without a limit {name[:-3]} is", ", ".join(
    f"{run['figures'][name] / 1e6:.2f} ms" for run in control["measured"]))
for number, setting in enumerate(tried["verification"]["settings"]):
    limits = setting["limits"]
    runs = [run["figures"][name] for run in setting["measured"]]
    kept = sum(1 for ns in runs if ns is not None and ns <= limit)
    known = sorted(ns for ns in runs if ns is not None)
    middle = f"{known[len(known) // 2] / 1e6:.2f} ms" if known else "never"
    what = "recommended" if number == 0 else "15% less"
    print(f"{what:12} {limits['quota_ns'] / limits['period_ns']:.3f} CPUs "
          f"{limits['quota_ns'] / 1e6:8.2f} ms per {limits['period_ns'] / 1e6:6.1f} ms, burst "
          f"{limits['burst_ns'] / 1e6:7.2f} ms: kept in {kept} of {len(runs)}, middle {middle}")
PY
