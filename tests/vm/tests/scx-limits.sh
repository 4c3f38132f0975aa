# Limits hold whatever the shape of the tree: below many levels, beside more groups than there are
# slots for limits, and beyond the last slot, where the ancestor's limit holds, or the smallest limit
# without a slot for all of these; and the log says so.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=4}"
# As many limits as scx_reveille keeps: MAX_LIMITS - 2 of bpf/state.h.
LIMITS=1022
root=/sys/fs/cgroup/limits-test

load

# between NAME GROUP LEAST MOST: CPUs that the group uses over SECONDS_EACH.
between() {
    from_us=$(now_us)
    before=$(used_us "$2")
    sleep "$SECONDS_EACH"
    after=$(used_us "$2")
    awk -v name="$1" -v used=$((after - before)) -v took=$(($(now_us) - from_us)) -v least="$3" -v most="$4" 'BEGIN {
        got = used / took
        printf "limits: %s: %.4f CPU, %s to %s are due\n", name, got, least, most
        exit got < least || got > most
    }' || fail "$1"
}
# chain TOP DEPTH: so many groups within each other; prints the innermost.
chain() {
    inner=$1
    for _ in $(seq "$2"); do
        echo +cpu >"$inner/cgroup.subtree_control"
        inner=$inner/d
        mkdir "$inner"
    done
    echo "$inner"
}
# monitored WORDS OPTION...: does --monitor say so of the present?
monitored() {
    words=$1
    shift
    scx_reveille --monitor 0.5 "$@" >monitor &
    monitor=$!
    sleep 1.5
    kill -INT $monitor
    wait $monitor || true
    grep -q "$words" monitor || fail "--monitor $* does not say \`$words\`: $(tail -n 1 monitor | cut -c 1-300)"
}

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control

# Depth is no way out.
mkdir $root
echo "10000 100000" >$root/cpu.max
deep=$(chain $root 30)
hogs "$deep" 0 1
sleep 1
between "30 levels below 10 ms/100 ms" $root 0.08 0.11
# A limit in the middle, written and taken back while the hog runs.
echo "40000 100000" >$root/cpu.max
echo "5000 100000" >$root/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/cpu.max
sleep 1
between "15 levels below 5 ms/100 ms" $root 0.04 0.06
echo max >$root/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/cpu.max
sleep 1
between "the same without it, below 40 ms/100 ms" $root 0.35 0.42
echo max >$root/cpu.max
sleep 1
between "without any limit" $root 0.80 1.01
clear_all
# Every level has a limit, the outermost the least.
mkdir $root
deep=$(chain $root 20)
at=$root
while [ "$at" != "$deep" ]; do
    at=$at/d
    echo "50000 100000" >"$at/cpu.max"
done
echo "10000 100000" >$root/cpu.max
hogs "$deep" 1 1
sleep 1
between "20 limits within each other, the least around all" $root 0.05 0.11
clear_all

# Groups without a limit take nothing from the one that has one.
mkdir $root
echo +cpu >$root/cgroup.subtree_control
seq 1060 | sed "s|^|$root/free|" | xargs mkdir
mkdir $root/limited
hogs $root/limited 0 1
sleep 0.5
echo "10000 100000" >$root/limited/cpu.max
sleep 1
between "10 ms/100 ms beside 1060 groups without a limit" $root/limited 0.08 0.11
clear_all

# At capacity the ancestor's limit holds, and it is said; a slot that comes free is used again.
mkdir $root
echo +cpu >$root/cgroup.subtree_control
mkdir $root/many $root/around $root/late
echo +cpu >$root/late/cgroup.subtree_control
echo +cpu >$root/many/cgroup.subtree_control
echo +cpu >$root/around/cgroup.subtree_control
echo "20000 100000" >$root/around/cpu.max
seq $((LIMITS - 1)) | sed "s|^|$root/many/g|" | xargs mkdir
for i in $(seq $((LIMITS - 1))); do echo "50000 100000" >$root/many/g$i/cpu.max; done
mkdir $root/around/late
echo "5000 100000" >$root/around/late/cpu.max
hogs $root/around/late 2 1
sleep 1
between "a limit too many, within 20 ms/100 ms" $root/around 0.17 0.22
grep -q '/limits-test/around/late' log || fail "the log does not name the group without a slot"
monitored '1 limit is NOT kept as written'
monitored '"limits_refused":1' --json
# Without an ancestor's they share the smallest that was refused, which is 5 ms/100 ms.
mkdir $root/late/a $root/late/b
echo "20000 100000" >$root/late/a/cpu.max
echo "10000 100000" >$root/late/b/cpu.max
hogs $root/late/a 0 1
hogs $root/late/b 1 1
sleep 1
between "two more limits too many, within none" $root/late 0.03 0.06
monitored '3 limits are NOT kept as written'
echo max >$root/many/g7/cpu.max
rmdir $root/many/g8
rmdir $root/many/g9
sleep 1
for group in a b; do echo max >$root/late/$group/cpu.max; done
sleep 0.5
between "without their limits" $root/late 1.2 2.02
echo "20000 100000" >$root/late/a/cpu.max
echo "10000 100000" >$root/late/b/cpu.max
sleep 1
between "written again once three slots are free" $root/late 0.25 0.32
# The kernel tells of changes only.
echo max >$root/around/late/cpu.max
echo "5000 100000" >$root/around/late/cpu.max
sleep 1
between "likewise, within a limit" $root/around 0.04 0.06
monitored '"limits_refused":0' --json
clear_all
finish
