# What a server's administrator does to scx_reveille: idle groups weigh what they do in the kernel,
# a limit written all the time stays one that pays, a silent client delays nobody, two started at
# once leave one, exit codes are as --help says, and `set` and --monitor outlive hotplug.
set -eu
. /lib/functions.sh

: "${FLIPS_SECONDS:=8}"
root=/sys/fs/cgroup/safe-test
# idle_share NAME A B: B had 3/1027 of what both used, between half and twice of it.
idle_share() {
    part=$(part_of "$3" "$2" 6)
    echo "safe: $1: $part of the CPU, 0.0029 are due"
    between 0.0015 "$part" 0.006 || fail "$1 has too much, or too little"
}

# The loader, whatever happens, leaves its exit code.
code=0
scx_reveille replay /nothing-there 2>replay || code=$?
[ "$code" = 2 ] && grep -q nothing-there replay || fail "replay of no file: exit code $code"

# Before anything is loaded, a file that cannot be written is refused, too.
code=0
scx_reveille --record /nothing-there/decisions 2>record || code=$?
[ "$code" = 2 ] && grep -q 'cannot write /nothing-there' record ||
    fail "--record to no directory: exit code $code: $(cat record)"
[ "$(state)" = disabled ] || fail "--record to no directory: it was loaded"

scx_reveille --exit-after 5 2>first & first=$!
scx_reveille --exit-after 5 2>second & second=$!
codes=
for pid in $first $second; do
    code=0
    wait $pid || code=$?
    codes="$codes $code"
done
case $codes in " 0 2" | " 2 0") ;; *) fail "two at once: exit codes$codes: $(cat first second)" ;; esac
cat first second | grep -q 'another sched_ext scheduler is running: reveille' ||
    fail "two at once: the refusal does not name the other: $(cat first second)"
until_state disabled

# SysRq-S.
load
echo S >/proc/sysrq-trigger
ended 3

# Idle groups and tasks; a group that was idle before the scheduler came, too.
tree early normal idle
echo 1 >$root/early/cpu.idle
load
hogs $root/normal 0 1
hogs $root/early 0 1
sleep 1
idle_share "a group that was idle before" $root/normal $root/early
kill_all $root/early
hogs $root/idle 0 1
echo 1 >$root/idle/cpu.idle
sleep 1
idle_share "a group that is idle now" $root/normal $root/idle
echo 0 >$root/idle/cpu.idle
sleep 1
part=$(part_of $root/idle $root/normal 4)
echo "safe: the group that is idle no more: $part of the CPU"
between 0.45 "$part" 0.55 || fail "a group that is idle no more has another share"
kill_all $root/idle
sh -c 'echo 0 >"$1"; exec task idle taskset -c 0 task hogs 1 0' idle $root/normal/cgroup.procs &
sleep 2
schedstats $root/normal >tasks
sleep 6
schedstats $root/normal | paste -d ' ' tasks - | awk '
    { used[NR] = $6 - $2; sum += used[NR] }
    END {
        printf "safe: a task of SCHED_IDLE: %.4f of the CPU, %.4f are due\n", used[2] / sum, 3 / 1027
        exit NR != 2 || used[2] / sum > 0.006 || used[2] / sum < 0.0015
    }' || fail "a task of SCHED_IDLE has too much, or too little"
clear_all

# A limit written all the time while hogs stand in line for it, and then no more.
mkdir $root
# The kernel patches its code for the first limit and the last: there is another.
mkdir $root-other
echo "100000 100000" >$root-other/cpu.max
for cpu in 0 1 2 3; do hogs $root $cpu 1; done
flips=$(task flip $root/cpu.max "$FLIPS_SECONDS" 0 "2000 20000" "3000 10000" "1000 10000")
echo "40000 100000" >$root/cpu.max
sleep 1
a=$(used_us $root)
sleep 3
awk -v flips=$flips -v used=$(($(used_us $root) - a)) 'BEGIN {
    printf "safe: after %d writes of cpu.max: %.3f CPU, 0.400 are due\n", flips, used / 3e6
    exit used < 0.9e6 || used > 1.5e6
}' || fail "a limit that was written often does not pay"
clear_all
rmdir $root-other

# A client that says nothing.
task silent /run/scx_reveille/socket 30 & silent=$!
sleep 0.5
from=$(date +%s)
scx_reveille set +SWQUEUE,-SIS_UTIL || fail "set beside a silent client"
kill -INT $loader
ended 0
took=$(($(date +%s) - from))
echo "safe: Ctrl-C beside a silent client took $took s"
[ $took -le 5 ] || fail "a silent client delayed Ctrl-C"
kill $silent 2>/dev/null || true

# Nor does who reads statistics: one that goes ends nothing, one that stops delays no signal.
mkfifo statistics
head -n 1 statistics >first &
load --stats 0.1 --json >statistics
sleep 2
still_loaded "the reader of --stats is gone"
grep -q 'no more statistics' log || fail "the log does not tell that the reader of --stats is gone: $(cat log)"
kill -INT $loader
ended 0
sleep 60 <statistics & reader=$!
load --stats 0.1 --json >statistics
# The pipe is full by then.
sleep 8
kill -TERM $loader
ends_within $loader 10 || fail "a reader of --stats that has stopped delays SIGTERM"
kill $reader
ended 0

# A CPU goes while tasks wait in its queue, also such as may run nowhere else.
load
tree
hogs $root 0-3 32
hogs $root 3 2
sleep 1
cpu_goes 3 0-2 10
until_state enabled
clear_all
kill -INT $loader
ended 0

# It was away and comes: the scheduler is loaded again, as it was set.
loaded_again() { sed '1,/loading again/d' log | grep -q scheduling; }
load
scx_reveille set +SWQUEUE,-SIS_UTIL
scx_reveille --monitor 0.5 --json >monitor & monitor=$!
sleep 1
echo 1 >/sys/devices/system/cpu/cpu3/online
for _ in $(seq 300); do
    loaded_again && break
    sleep 0.1
done
loaded_again || fail "hotplug did not load it again: $(cat log)"
before=$(wc -l <monitor)
sleep 3
kill -0 $monitor || fail "a reload ended --monitor"
[ "$(wc -l <monitor)" -gt "$before" ] || fail "--monitor says no more after a reload"
# Another one, since the first may have ended.
scx_reveille --monitor 0.5 --json >another & other=$!
sleep 2
kill $other
tail -n 1 another | grep -q '"SWQUEUE"' || fail "a reload forgot set: $(tail -n 1 another)"
! grep -qE '"(EEVDF|TTWU_QUEUE)"' another || fail "--monitor names features that mean nothing here"
# And when another is started in its place.
kill -INT $loader
ended 0
load
sleep 2
before=$(wc -l <monitor)
sleep 2
[ "$(wc -l <monitor)" -gt "$before" ] || fail "--monitor does not come back"
kill -INT $monitor
wait $monitor || fail "--monitor ended with $?"
kill -INT $loader
ended 0
exit $failed
