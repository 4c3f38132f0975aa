# Lines that a message moves: for each kind of channel a window of counted rounds, between two CPUs
# and on one, then one by pipe whose wakers enqueue themselves. Needs the plugin of tests/vm/lines: tests/vm/lines.sh boots it so.
set -eu

ip link set lo up
for cpu in 1 0; do
    for kind in pipe unix udp tcp; do
        exchange $kind $cpu "$ROUNDS"
    done
done
echo NO_TTWU_QUEUE >/sys/kernel/debug/sched/features
exchange pipe 1 "$ROUNDS"
cp /proc/kallsyms "$OUT"
