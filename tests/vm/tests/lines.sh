# Lines that a message moves: for each kind of channel a window of counted rounds, between two CPUs
# on one, and between two beside a second pair, then one by pipe whose wakers enqueue themselves. Needs the plugin
# of tests/vm/lines: tests/vm/lines.sh boots it so.
set -eu

ip link set lo up
for cpus in 1 0 "1 2"; do
    for kind in pipe unix udp tcp; do
        exchange $kind "${cpus% *}" "$ROUNDS" ${cpus#[01]}
    done
done
echo NO_TTWU_QUEUE >/sys/kernel/debug/sched/features
exchange pipe 1 "$ROUNDS"
cp /proc/kallsyms "$OUT"
