# No setting gets scx_reveille ejected: weights at both extremes, nice values, tiny limits with
# hundreds of tasks, idle groups, sets of CPUs, and settings drawn at random. Tasks that wait get short
# turns, for which limits are exceeded by so much at most. Under --icount. The watchdog has 4 s, so
# that a task may wait 1 s; with the default, 30 s, such turns are 7.5 times rarer.
set -eu

: "${ROUNDS:=2}" "${SEED:=1}" "${ROUND_SECONDS:=7}" "${MANY:=300}"
# What a turn costs a group at most, us: 20, and what the task had to do in the kernel.
TURN_US=60
root=/sys/fs/cgroup/floor-test
failed=0
fail() {
    echo "floor: FAILED: $*"
    failed=1
}
alive() {
    [ "$(cat /sys/kernel/sched_ext/state)" = enabled ] && return
    cat log
    echo "floor: FAILED: $*: the kernel has ended the scheduler"
    exit 1
}
used_us() { awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"; }
# hogs GROUP CPUS NICE N
hogs() {
    sh -c 'echo 0 >"$1"; exec taskset "$2" task hogs "$4" "$3"' hogs "$1/cgroup.procs" "$2" "$3" "$4" &
}
clear_all() {
    for pid in $(find "$root" -name cgroup.procs -exec cat {} +); do kill -9 "$pid"; done
    for _ in $(seq 100); do
        find "$root" -depth -type d -exec rmdir {} + 2>/dev/null && return
        sleep 0.1
    done
    fail "killed tasks do not end"
}
group() {
    mkdir -p $root
    echo +cpu >$root/cgroup.subtree_control
    mkdir "$root/$1"
}
# at_most NAME GROUP US_PER_S N: so much and the turns of N tasks, over ROUND_SECONDS.
at_most() {
    before=$(used_us "$2")
    sleep "$ROUND_SECONDS"
    alive "$1"
    awk -v name="$1" -v used=$(($(used_us "$2") - before)) -v s="$ROUND_SECONDS" -v due="$3" -v turns=$(($4 * TURN_US)) 'BEGIN {
        printf "floor: %s: %d us per s, %d are due, %d at most\n", name, used / s, due, due * 1.1 + turns
        exit used / s > due * 1.1 + turns || used == 0
    }' || fail "$1"
}

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
scx_reveille --watchdog-ms 4000 2>log &
loader=$!
for _ in $(seq 1200); do
    [ -S /run/scx_reveille/socket ] && break
    kill -0 $loader || { cat log; exit 1; }
    sleep 0.1
done

group light
group heavy
echo 1 >$root/light/cpu.weight
echo 10000 >$root/heavy/cpu.weight
hogs $root/light 1 0 2
hogs $root/heavy 1 0 3
sleep 1
at_most "weight 1 beside 10000" $root/light 100 2
# It gets the CPU to die.
for pid in $(cat $root/light/cgroup.procs); do kill -9 "$pid"; done
sleep 3
[ -z "$(cat $root/light/cgroup.procs)" ] || fail "killed tasks of weight 1 still live"
clear_all

group nice
hogs $root/nice 1 19 1
hogs $root/nice 1 -20 2
sleep $((ROUND_SECONDS + 1))
alive "nice 19 beside nice -20"
clear_all

for max in "1000 100000" "1000 1000000"; do
    group small
    hogs $root/small 3 0 "$MANY"
    sleep 2
    echo "$max" >$root/small/cpu.max
    sleep 2
    due=$((1000 * 1000000 / ${max#* }))
    at_most "$MANY hogs under $max" $root/small $due "$MANY"
    clear_all
done

# draw SALT N: a number below N
draw() { awk -v seed="$SEED$1" -v n="$2" 'BEGIN { srand(seed); rand(); print int(rand() * n) }'; }
pick() { salt=$1; shift; shift "$(draw "$salt" $#)"; echo "$1"; }
for round in $(seq "$ROUNDS"); do
    said=
    for g in 1 2 3; do
        group g$g
        weight=$(pick "$round$g"1 1 2 10 100 1000 10000)
        max=$(pick "$round$g"2 max max "1000 1000000" "1000 100000" "10000 100000" "50000 20000")
        idle=$(pick "$round$g"3 0 0 0 1)
        n=$(pick "$round$g"4 1 2 5 20 60)
        nice=$(pick "$round$g"5 -20 -10 0 0 10 19)
        cpus=$(pick "$round$g"6 1 2 3 3)
        echo "$weight" >$root/g$g/cpu.weight
        [ "$idle" = 0 ] || echo 1 >$root/g$g/cpu.idle
        echo "$max" >$root/g$g/cpu.max
        hogs $root/g$g "$cpus" "$nice" "$n"
        said="$said; weight $weight, max $max, idle $idle, $n hogs of nice $nice on $cpus"
    done
    sleep "$ROUND_SECONDS"
    echo "floor: round $round$said"
    alive "round $round$said"
    clear_all
done
kill -INT $loader
wait $loader || fail "exit code $?: $(cat log)"
exit $failed
