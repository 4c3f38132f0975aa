# Two hogs in a group limited to 20 ms of every 100 ms get 0.200 CPU, whichever scheduler runs
# them; also if the group may save up a burst of 20 ms, since hogs leave nothing to save.
# TOLERANCE_PCT says how far off the share may be.
set -eu
. /lib/functions.sh

SECONDS_EACH=10
: "${TOLERANCE_PCT:=10}"
root=/sys/fs/cgroup/quota-test

throttled() { awk '$1 == "nr_throttled" { print $2 }' "$root/cpu.stat"; }
now_s() { cut -d' ' -f1 /proc/uptime; }

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
for burst_us in 0 20000; do
    mkdir $root
    echo "20000 100000" >"$root/cpu.max"
    echo "$burst_us" >"$root/cpu.max.burst"
    hogs $root 0,1 2
    # What they may have saved before the first hog ran is spent.
    sleep 1
    from_s=$(now_s) from_us=$(used_us $root) from_throttled=$(throttled)
    sleep "$SECONDS_EACH"
    to_s=$(now_s) to_us=$(used_us $root) to_throttled=$(throttled)
    clear_all
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
