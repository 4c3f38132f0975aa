# Limits under scx_reveille: hogs get their quota and no more, with burst and without, nested
# groups the least of what is around them, and a burst that was saved up is had once.
set -eu

: "${TOLERANCE_PCT:=2}"
root=/sys/fs/cgroup/limit-test

scx_reveille --watchdog-ms 10000 2>log &
loader=$!
trap 'kill $loader; wait $loader || true; cat log' EXIT
while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ]; do sleep 0.1; done

used_us() { awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"; }
now_us() { awk '{ printf "%d", $1 * 1e6 }' /proc/uptime; }
hog() { sh -c 'echo 0 >"$1"; while :; do :; done' hog "$1/cgroup.procs" & }
# within NAME GOT DUE
within() {
    awk -v name="$1" -v got="$2" -v due="$3" -v tolerance="$TOLERANCE_PCT" 'BEGIN {
        printf "limits: %s: %.4f CPU, %.4f are due\n", name, got, due
        exit got < due * (1 - tolerance / 100) || got > due * (1 + tolerance / 100)
    }'
}
# share GROUP: CPUs that it used in 10 s.
share() {
    from_us=$(now_us) from=$(used_us "$1")
    sleep 10
    to_us=$(now_us) to=$(used_us "$1")
    awk "BEGIN { print ($to - $from) / ($to_us - $from_us) }"
}
clear_all() {
    for procs in $(find "$root" -name cgroup.procs); do
        for pid in $(cat "$procs"); do kill -9 "$pid"; done
    done
    sleep 1
    find "$root" -depth -type d -exec rmdir {} ';'
}

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
for burst_us in 0 20000; do
    mkdir $root
    echo "20000 100000" >$root/cpu.max
    echo $burst_us >$root/cpu.max.burst
    hog $root
    hog $root
    sleep 2
    within "20 ms/100 ms, burst $burst_us us" "$(share $root)" 0.2
    scx_reveille --monitor 1 --json >monitor & sleep 2.5; kill -INT $!; wait $! || true
    tail -n 1 monitor | grep -o '"groups":.*'
    clear_all
done

# A period of 30 ms beside one of 250 ms: no common tick.
mkdir -p $root
echo +cpu >$root/cgroup.subtree_control
mkdir $root/short $root/long
echo "45000 30000" >$root/short/cpu.max
echo "50000 250000" >$root/long/cpu.max
for _ in 1 2 3; do hog $root/short; done
hog $root/long
sleep 2
within "45 ms/30 ms" "$(share $root/short)" 1.5
within "50 ms/250 ms" "$(share $root/long)" 0.2
clear_all

# The group around has less than the two in it together.
mkdir -p $root
echo +cpu >$root/cgroup.subtree_control
echo "50000 100000" >$root/cpu.max
mkdir $root/a $root/b
echo "20000 100000" >$root/a/cpu.max
hog $root/a
hog $root/a
hog $root/b
hog $root/b
sleep 2
within "nested: 20 ms within 50 ms" "$(share $root/a)" 0.2
within "nested: 50 ms around all" "$(share $root)" 0.5
clear_all

# Idle for seconds, then a hog: the first period has quota and burst, the others the quota.
mkdir -p $root
echo "20000 100000" >$root/cpu.max
echo 20000 >$root/cpu.max.burst
sleep 2
hog $root
sleep 5.05
used=$(used_us $root)
echo "limits: a hog that began with a burst of 20 ms used $used us in 5 s"
# 50 or 51 periods, and the burst.
[ "$used" -ge 950000 ] && [ "$used" -le 1060000 ]
clear_all
