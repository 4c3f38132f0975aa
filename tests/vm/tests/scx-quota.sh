# Limits under scx_reveille: hogs get their quota within 1% and no more, with burst and without, in
# nested groups and with many threads; of two groups in a third, the least of what is around them;
# and a burst that was saved up is had once. Under --icount.
set -eu
. /lib/functions.sh

: "${TOLERANCE_PCT:=1}"
root=/sys/fs/cgroup/limit-test

# within NAME GOT DUE: as much as is due, by the tolerance.
within() {
    awk -v name="$1" -v got="$2" -v due="$3" -v pct="$TOLERANCE_PCT" 'BEGIN {
        printf "limits: %s: %.4f CPU, %.4f are due\n", name, got, due
        exit got < due * (1 - pct / 100) || got > due * (1 + pct / 100)
    }' || fail "$1"
}
sample() { echo "$(now_us) $(used_us "$1") $(now_us)" >>samples; }
# share GROUP: CPUs that it used in 10 s. To `samples`: a time, what it had used, a time.
share() {
    : >samples
    at_us=$(now_us)
    end_us=$((at_us + 10000000))
    while [ $((at_us + 100000)) -lt $end_us ]; do
        sample "$1"
        usleep 80000
        at_us=$(now_us)
    done
    usleep $((end_us - at_us))
    sample "$1"
    awk 'NR == 1 { t = $1; u = $2 } END { print ($2 - u) / ($1 - t) }' samples
}
# every_window QUOTA_US PERIOD_US BURST_US: between any two samples there was no more than
# what could be saved up, the quota of the periods that began, and a debt of 5 ms.
every_window() {
    awk -v quota="$1" -v period="$2" -v burst="$3" '{ t[NR] = $1; u[NR] = $2; later[NR] = $3 } END {
        # Times are told to 10 ms.
        for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) {
            n = int((later[j] + 10000 - t[i] + period - 1) / period)
            spare = (n + 1) * quota + burst + 5000 - (u[j] - u[i])
            if (min == "" || spare < min) min = spare
        }
        printf "limits: %d samples, in every window at least %d us below the bound\n", NR, min
        exit min < 0 || NR < 20
    }' samples || fail "more than the bound in a window"
}

load
for burst_us in 0 20000; do
    tree
    echo "20000 100000" >$root/cpu.max
    echo $burst_us >$root/cpu.max.burst
    hogs $root 0,1 2
    sleep 1
    within "20 ms/100 ms, burst $burst_us us" "$(share $root)" 0.2
    every_window 20000 100000 $burst_us
    scx_reveille --monitor 1 --json >monitor & sleep 2.5; kill -INT $!; wait $! || true
    # cpu.stat does not tell.
    tail -n 1 monitor | grep -o '"cgroup":"/limit-test".*"nr_throttled":[1-9].*' ||
        fail "--monitor does not tell of throttling"
    clear_all
done

# A period of 30 ms beside one of 250 ms: no common tick.
tree short long
echo "45000 30000" >$root/short/cpu.max
echo "50000 250000" >$root/long/cpu.max
hogs $root/short 0-2 3
hogs $root/long 3 1
sleep 1
within "45 ms/30 ms" "$(share $root/short)" 1.5
every_window 45000 30000 0
within "50 ms/250 ms" "$(share $root/long)" 0.2
every_window 50000 250000 0
clear_all

# Two groups in one that has less than both ask for. The tasks of the first begin on one CPU: if what was
# throttled is not spread again when it is released, the other group takes what they leave.
tree a b
echo "50000 100000" >$root/cpu.max
echo "20000 100000" >$root/a/cpu.max
hogs $root/a 0 2
sleep 1
for pid in $(cat $root/a/cgroup.procs); do taskset -cp 0,1 "$pid" >/dev/null; done
within "nested: 20 ms within 50 ms, alone" "$(share $root/a)" 0.2
hogs $root/b 2,3 2
sleep 1
within "nested: 20 ms within 50 ms" "$(share $root/a)" 0.2
within "nested: 50 ms around all" "$(share $root)" 0.5
clear_all

tree
echo "20000 100000" >$root/cpu.max
hogs $root 0-3 64
sleep 1
within "64 hogs in 20 ms/100 ms" "$(share $root)" 0.2
every_window 20000 100000 0
clear_all

# Idle for seconds, then a hog: the first period has quota and burst, the others the quota.
# Over whole periods: half a period more would begin one more at half of all phases.
tree
echo "20000 100000" >$root/cpu.max
echo 20000 >$root/cpu.max.burst
sleep 2
began_us=$(now_us)
hogs $root 0 1
sleep 5
used=$(used_us $root)
took_us=$(($(now_us) - began_us))
echo "limits: a hog that began with a burst of 20 ms used $used us in $took_us us"
# The periods that began meanwhile, the burst, and a tick's debt.
[ "$used" -ge 1015000 ] && [ "$used" -le $(((took_us / 100000 + 1) * 20000 + 20000 + 5000)) ] ||
    fail "a burst that was saved up is not had once"
clear_all
finish
