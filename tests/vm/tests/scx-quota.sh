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
# hog GROUP CPU
hog() { sh -c 'echo 0 >"$1"; exec taskset -c "$2" sh -c "while :; do :; done"' hog "$1/cgroup.procs" "$2" & }
# within NAME GOT DUE [LESS_PCT]: not more than due, by the tolerance; nor less, by LESS_PCT.
within() {
    awk -v name="$1" -v got="$2" -v due="$3" -v more="$TOLERANCE_PCT" -v less="${4:-$TOLERANCE_PCT}" 'BEGIN {
        printf "limits: %s: %.4f CPU, %.4f are due\n", name, got, due
        exit got < due * (1 - less / 100) || got > due * (1 + more / 100)
    }'
}
# share GROUP: CPUs that it used in 10 s. To `samples`: a time, what it had used, a time.
share() {
    : >samples
    end_us=$(($(now_us) + 10000000))
    at_us=0
    while [ "$at_us" -lt "$end_us" ]; do
        at_us=$(now_us)
        echo "$at_us $(used_us "$1") $(now_us)" >>samples
    done
    awk 'NR == 1 { t = $1; u = $2 } END { print ($2 - u) / ($1 - t) }' samples
}
# every_window QUOTA_US PERIOD_US BURST_US: between any two samples there was no more than
# what could be saved up, the quota of the periods that began, and 25 ms: a debt at most, which
# an emulated CPU makes that gets no turn on the host while its timer is due.
every_window() {
    awk -v quota="$1" -v period="$2" -v burst="$3" '{ t[NR] = $1; u[NR] = $2; later[NR] = $3 } END {
        for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) {
            n = int((later[j] - t[i] + period - 1) / period)
            spare = (n + 1) * quota + burst + 25000 - (u[j] - u[i])
            if (min == "" || spare < min) min = spare
        }
        printf "limits: %d samples, in every window at least %d us below the bound\n", NR, min
        exit min < 0 || NR < 20
    }' samples
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
    hog $root 0
    hog $root 1
    sleep 2
    within "20 ms/100 ms, burst $burst_us us" "$(share $root)" 0.2
    every_window 20000 100000 $burst_us
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
for cpu in 0 1 2; do hog $root/short $cpu; done
hog $root/long 3
sleep 2
# A late timer costs a short period its quota, as in the kernel: emulation has many.
within "45 ms/30 ms" "$(share $root/short)" 1.5 5
every_window 45000 30000 0
# 10 s are 40 periods, more or less one.
within "50 ms/250 ms" "$(share $root/long)" 0.2 4
every_window 50000 250000 0
clear_all

# The group around has less than the two in it together.
mkdir -p $root
echo +cpu >$root/cgroup.subtree_control
echo "50000 100000" >$root/cpu.max
mkdir $root/a $root/b
echo "20000 100000" >$root/a/cpu.max
hog $root/a 0
hog $root/a 1
hog $root/b 2
hog $root/b 3
sleep 2
# Less if the group around is out of runtime while this one has some: the phase between their
# periods decides, as in the kernel. One slice of 5 ms that the other group draws first is 25%.
within "nested: 20 ms within 50 ms" "$(share $root/a)" 0.2 25
within "nested: 50 ms around all" "$(share $root)" 0.5
clear_all

# Idle for seconds, then a hog: the first period has quota and burst, the others the quota.
mkdir -p $root
echo "20000 100000" >$root/cpu.max
echo 20000 >$root/cpu.max.burst
sleep 2
began_us=$(now_us)
hog $root 0
sleep 5.05
used=$(used_us $root)
took_us=$(($(now_us) - began_us))
echo "limits: a hog that began with a burst of 20 ms used $used us in $took_us us"
# The periods that began meanwhile, the burst, and a tick's debt.
[ "$used" -ge 950000 ] && [ "$used" -le $(((took_us / 100000 + 1) * 20000 + 20000 + 20000)) ]
clear_all
