# No setting gets scx_reveille ejected: weights at both extremes, nice values, tiny limits with
# hundreds of tasks. Tasks that wait get short turns, for which limits are exceeded by so much at most.
# scx-random.sh draws settings. Under --icount. The watchdog has 4 s, so
# that a task may wait 1 s; with the default, 30 s, such turns are 7.5 times rarer.
set -eu
. /lib/functions.sh

: "${ROUND_SECONDS:=7}" "${MANY:=300}"
# What a turn costs a group at most, us: 10, and what the task had to do in the kernel.
TURN_US=60
root=/sys/fs/cgroup/floor-test
# at_most NAME GROUP US_PER_S N LEAST: so much and the turns of N tasks, over ROUND_SECONDS, and no less than
# LEAST us per s.
at_most() {
    before=$(used_us "$2")
    sleep "$ROUND_SECONDS"
    still_loaded "$1"
    awk -v name="$1" -v used=$(($(used_us "$2") - before)) -v s="$ROUND_SECONDS" -v due="$3" -v turns=$(($4 * TURN_US)) -v least="$5" 'BEGIN {
        printf "floor: %s: %d us per s, %d are due, %d to %d allowed\n", name, used / s, due, least, due * 1.1 + turns
        exit used / s > due * 1.1 + turns || used / s < least
    }' || fail "$1"
}

WATCHDOG_MS=4000 load

extreme_weights
# Two turns of 10 us per second are 20.
at_most "weight 1 beside 10000" $root/light 100 2 10
# It gets the CPU to die.
kill_all $root/light
sleep 3
[ -z "$(cat $root/light/cgroup.procs)" ] || fail "killed tasks of weight 1 still live"
clear_all

# Without cpu among the controllers below, these groups have no weight: tasks have, 15 and 88761.
mkdir -p $root/light $root/heavy
hogs $root/light 0 1 19
hogs $root/heavy 0 2 -20
sleep 1
at_most "nice 19 beside two of nice -20" $root/light 84 1 5
clear_all

# throttled NAME CPUS MAX: MANY hogs on these CPUs keep to the limit.
throttled() {
    hogs $root/small "$2" "$MANY"
    sleep 2
    echo "$3" >$root/small/cpu.max
    sleep 2
    due=$((1000 * 1000000 / ${3#* }))
    at_most "$1 under $3" $root/small $due "$MANY" $((due * 8 / 10))
    clear_all
}
for max in "1000 100000" "1000 1000000"; do
    tree small
    throttled "$MANY hogs of one CPU" 1 "$max"
done

# The emulator runs one CPU at a time: where both compute, a turn has the other CPU's time in it. On two CPUs
# turns coincide in one boot of ten, and take 150 us instead of 31.
TURN_US=700
tree small
throttled "$MANY hogs of two CPUs" 0,1 "1000 1000000"
tree small other
hogs $root/other 0 1
hogs $root/other 1 1
throttled "$MANY hogs with both CPUs busy" 1 "1000 1000000"

# run_soon NAME GROUP: a second later most of its 900 tasks, on one CPU, have run. Turns of a whole tick are
# 250 in a second, but those that have waited for 1 s get short ones.
run_soon() {
    schedstats "$2" >then
    sleep 1
    schedstats "$2" >now
    awk -v name="$1" 'FNR == NR { runs[$1] = $4; next } $4 > runs[$1] { n++ } END {
        print "floor:", name ": a second later", n, "of 900 have run"
        exit n < 700
    }' then now || fail "$1"
    still_loaded "$1"
}
tree freed
hogs $root/freed 0 900
echo "1000 1000000" >$root/freed/cpu.max
sleep 4
echo max >$root/freed/cpu.max
run_soon "the limit of 900 tasks goes" $root/freed
clear_all

# A CPU goes while hundreds of tasks wait for it, and comes back.
tree
hogs $root 0,1 900
sleep 3
cpu_goes 1 0 30
still_loaded "a CPU goes"
echo 1 >/sys/devices/system/cpu/cpu1/online
clear_all

# It comes back to tasks that have no other: the kernel lines them up there without asking.
tree pinned
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
echo +cpuset >$root/cgroup.subtree_control
echo 1 >$root/pinned/cpuset.cpus
hogs $root/pinned 0,1 900
sleep 3
cpu_goes 1 0 30
echo 1 >/sys/devices/system/cpu/cpu1/online
run_soon "a CPU comes back to 900 tasks" $root/pinned
clear_all
finish
