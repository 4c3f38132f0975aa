# Two hogs in a group limited to 20 ms of every 100 ms get 0.200 CPU, whichever scheduler runs
# them; also if the group may save up a burst of 20 ms, since hogs leave nothing to save.
# TOLERANCE_PCT says how far off the share may be.
set -eu

SECONDS_EACH=10
: "${TOLERANCE_PCT:=10}"
group=/sys/fs/cgroup/quota-test

used_us() { awk '$1 == "usage_usec" { print $2 }' "$group/cpu.stat"; }
throttled() { awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"; }
now_s() { cut -d' ' -f1 /proc/uptime; }

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
for burst_us in 0 20000; do
    mkdir "$group"
    echo "20000 100000" >"$group/cpu.max"
    echo "$burst_us" >"$group/cpu.max.burst"
    hogs=
    for _ in 1 2; do
        sh -c 'echo 0 >"$1"; while :; do :; done' hog "$group/cgroup.procs" &
        hogs="$hogs $!"
    done
    # What they may have saved before the first hog ran is spent.
    sleep 1
    from_s=$(now_s) from_us=$(used_us) from_throttled=$(throttled)
    sleep "$SECONDS_EACH"
    to_s=$(now_s) to_us=$(used_us) to_throttled=$(throttled)
    kill -9 $hogs
    wait $hogs || true
    rmdir "$group"
    awk -v s="$from_s $to_s" -v us="$from_us $to_us" -v throttled="$from_throttled $to_throttled" \
        -v tolerance="$TOLERANCE_PCT" -v burst="$burst_us" 'BEGIN {
        split(s, S); split(us, U); split(throttled, T)
        share = (U[2] - U[1]) / 1e6 / (S[2] - S[1])
        periods = (S[2] - S[1]) / 0.1
        printf "quota: burst %d us: %.4f CPU, throttled %d times in %d periods\n",
            burst, share, T[2] - T[1], periods
        if (share < 0.2 * (1 - tolerance / 100) || share > 0.2 * (1 + tolerance / 100)) {
            printf "quota: that is not 0.2 within %s%%\n", tolerance
            exit 1
        }
        if (T[2] - T[1] < periods / 2) {
            print "quota: hardly throttled: the share is not the limit at work"
            exit 1
        }
    }'
done
