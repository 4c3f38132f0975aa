#!/usr/bin/env bash
# How often do interrupts wake kernel threads and daemons while all CPUs compute? The kernel counts each
# such wakeup as made by the task that is interrupted (`background_wakes` of a machine, docs/model.md).
# Needs root and tracefs: count-background-wakes.sh [SECONDS]. Threads of one CPU (kworker/0:1, ksoftirqd/0)
# are left out: record_wakee() is called only where a CPU is chosen.
set -euo pipefail

seconds=${1:-60}
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs none $tracing
work=$(mktemp -d)
instance=$tracing/instances/background-wakes-$$
end() {
    kill $(jobs -p) 2>/dev/null || true
    rmdir "$instance" 2>/dev/null || true
    rm -r "$work"
}
trap end EXIT
mkdir "$instance"
cp "$(command -v bash)" "$work/computing"

echo 8192 >"$instance/buffer_size_kb"
echo 'comm != "computing"' >"$instance/events/sched/sched_waking/filter"
taskset -pc $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r first last; do
    seq "$first" "${last:-$first}"
done >"$work/cpus"
while read -r cpu; do
    taskset -c "$cpu" "$work/computing" -c 'while :; do :; done' &
done <"$work/cpus"
sleep 1
[ "$(jobs -pr | wc -l)" -eq "$(wc -l <"$work/cpus")" ] || { echo "not every CPU computes" >&2; exit 1; }
echo 1 >"$instance/events/sched/sched_waking/enable"
sleep "$seconds"
echo 0 >"$instance/events/sched/sched_waking/enable"
cp "$instance/trace" "$work/trace"

sed -nE 's/^ +computing-.* comm=(.*) pid=.*/\1/p' "$work/trace" |
    awk -v seconds="$seconds" '
        /^kworker\/[0-9]+:/ || /\/[0-9]+$/ { next }
        { sub(/[:\/].*/, ""); count[$0]++; sum++ }
        END {
            for (name in count) printf "%8.2f a second: %s\n", count[name] / seconds, name | "sort -rn"
            close("sort -rn")
            printf "%8.2f a second in all\n", sum / seconds
        }'
