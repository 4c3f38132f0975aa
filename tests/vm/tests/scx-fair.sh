# Weights 100:200:300 share a CPU within 3%: of task groups, and of a group within a group;
# and tasks of nice 0 and 5 by the kernel's weights 1024:335.
set -eu

SECONDS_EACH=12
: "${TOLERANCE_PCT:=3}"
root=/sys/fs/cgroup/fair-test

scx_reveille --watchdog-ms 10000 2>log &
loader=$!
trap 'kill $loader; wait $loader || true; cat log' EXIT
while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ]; do sleep 0.1; done

used_us() { awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"; }
hog() { sh -c 'echo 0 >"$1"; exec taskset 8 sh -c "while :; do :; done"' hog "$1/cgroup.procs" & }

# share NAME:WEIGHT...: groups below $root, measured against these weights.
share() {
    sleep 2
    before=$(for pair in "$@"; do used_us "$root/${pair%:*}"; done | tr '\n' ' ')
    sleep "$SECONDS_EACH"
    after=$(for pair in "$@"; do used_us "$root/${pair%:*}"; done | tr '\n' ' ')
    echo "$*" | awk -v before="$before" -v after="$after" -v tolerance="$TOLERANCE_PCT" '{
        split(before, B, " "); split(after, A, " ")
        for (i = 1; i <= NF; i++) { split($i, P, ":"); weights += P[2]; used += A[i] - B[i] }
        for (i = 1; i <= NF; i++) {
            split($i, P, ":")
            got = (A[i] - B[i]) / used; due = P[2] / weights
            printf "fair: %s: %.4f of the CPU, %.4f are due\n", P[1], got, due
            if (got < due * (1 - tolerance / 100) || got > due * (1 + tolerance / 100)) bad = 1
        }
        if (bad) { print "fair: that is not within " tolerance "%"; exit 1 }
    }'
}
clear_all() {
    for procs in $(find "$root" -name cgroup.procs); do
        for pid in $(cat "$procs"); do kill -9 "$pid"; done
    done
    sleep 1
    find "$root" -depth -type d -exec rmdir {} ';'
}

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p $root
echo +cpu >$root/cgroup.subtree_control
for weight in 100 200 300; do
    mkdir $root/w$weight
    echo $weight >$root/w$weight/cpu.weight
    hog $root/w$weight
done
share w100:100 w200:200 w300:300
clear_all

# A group's tasks share what the group gets, however many they are.
mkdir -p $root
echo +cpu >$root/cgroup.subtree_control
mkdir $root/many $root/one
echo 200 >$root/one/cpu.weight
for _ in 1 2 3; do hog $root/many; done
hog $root/one
share many:100 one:200
clear_all

mkdir -p $root/n0 $root/n5
hog $root/n0
hog $root/n5
sleep 0.5
for pid in $(cat $root/n5/cgroup.procs); do renice -n 5 -p "$pid"; done
# Without cpu among the controllers below, these groups have no weight: tasks have.
share n0:1024 n5:335
clear_all
