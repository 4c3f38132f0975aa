# No wakeup is lost: pairs of tasks, fewer and more than there are CPUs, half of them with affinities
# that change, each go on every second. Under --icount; WAKEUPS=1000000000 goes on for so many.
set -eu
. /lib/functions.sh

: "${WAKEUPS:=1000000}"
WATCHDOG_MS=4000 load
sum=0
for features in "" +SWQUEUE; do
    [ -z "$features" ] || scx_reveille set $features
    until=$((sum + WAKEUPS / 2))
    while [ $sum -lt $until ]; do
        for pairs in 1 2 5 32; do
            n=$(task pairs $pairs 2) || die "after $sum wakeups one of $pairs pairs is lost"
            sum=$((sum + n))
        done
        still_loaded "after $sum wakeups"
    done
done
echo "wakeups: $sum, none lost"
finish
