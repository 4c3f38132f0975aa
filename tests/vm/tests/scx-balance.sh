# Who gets which CPU, and how soon: a task that wakes beside hogs, and SCHED_IDLE ones, also under a limit; hogs beside
# a real-time one; weights of tasks and groups over two CPUs; many tasks over two caches (CPUs 0 and 1, 2 and 3).
# Under --icount.
set -eu
. /lib/functions.sh

root=/sys/fs/cgroup/balance-test
mkdir -p d

# waits NAME MOST_US COMMAND...: the mean wait for a CPU of a task that the command starts, and that wakes every
# millisecond.
waits() {
    name=$1 most=$2
    shift 2
    "$@" task wakes d 3 >longest & waker=$!
    sleep 2.5
    read -r _ waited turns _ <"/proc/$waker/schedstat"
    wait $waker
    us=$((waited / turns / 1000))
    echo "balance: $name: waited $us us in the mean, $most at most are allowed; longest $(cat longest) us"
    [ $us -le "$most" ] || fail "$name"
}
# older_than MAJOR.MINOR: is the kernel?
older_than() { uname -r | awk -F. -v major="${1%.*}" -v minor="${1#*.}" '{ exit !($1 < major || ($1 == major && $2 + 0 < minor)) }'; }
# hog CPUS NICE: a task; `pids` has it.
hog() {
    taskset -c "$1" task hogs 1 "$2" &
    pids="${pids:-} $!"
}
idle_hog() {
    task idle taskset -c "$1" task hogs 1 0 &
    pids="${pids:-} $!"
}
allow() { for pid in $pids; do taskset -p "$1" "$pid" >/dev/null; done; }
done_with() {
    # shellcheck disable=SC2086 # an id is a word
    kill -9 $pids
    pids=
    sleep 0.3
}
cpu_times() { for pid in $pids; do cut -d ' ' -f 1 "/proc/$pid/schedstat"; done | tr '\n' ' '; }
# shares NAME SECONDS LEAST:MOST...: CPUs that each of $pids uses.
shares() {
    name=$1 seconds=$2
    shift 2
    from_us=$(now_us) before=$(cpu_times)
    sleep "$seconds"
    took=$(($(now_us) - from_us)) after=$(cpu_times)
    echo "$*" | awk -v name="$name" -v before="$before" -v after="$after" -v took=$took '{
        n = split(before, B, " "); split(after, A, " ")
        printf "balance: %s:", name
        for (i = 1; i <= n; i++) {
            got = (A[i] - B[i]) / took / 1000
            split($(i < NF ? i : NF), due, ":")
            printf " %.2f", got
            if (got < due[1] || got > due[2]) bad = 1
        }
        print "; allowed: " $0
        exit bad
    }' || fail "$name"
}

[ "${CLASS:-}" = kernel ] || load

idle_hog 1
sleep 0.5
waits "pinned beside a SCHED_IDLE hog" 300 taskset -c 1
done_with
# A hog gives way to a wakee that is before it, also where another waits; of more, turns end on time and not at a tick.
for most in 300 300 2000; do
    hog 1 0
    sleep 0.5
    waits "pinned beside one hog more" $most taskset -c 1
done
done_with

# A real-time task takes the CPU on which a task has just lined up. Before 6.19 no kernel tells of it.
behind_us=$(task behind 10 50)
echo "balance: behind a real-time task that runs for 50 ms: longest $behind_us us"
[ "${CLASS:-}" = kernel ] || older_than 6.19 || [ "$behind_us" -lt 10000 ] || fail "behind a real-time task"

# A real-time hog, and hogs that may run there, and on one more CPU: of the same cache, and of the other. Where the
# kernel gives real-time tasks no more than 95%, they have the rest.
for cpus in 0-1 1,2; do
    hog $cpus 0
    hog $cpus 0
    sleep 0.5
    task fifo taskset -c 1 task hogs 1 0 &
    first=$!
    sleep 1
    shares "CPUs $cpus, a SCHED_FIFO hog on 1" 12 0.4:0.6
    kill -9 $first
    done_with
done

# Two of nice 0 have a CPU each; the one of nice 19 began alone on its CPU.
hog 0 19
hog 1 0
hog 1 0
sleep 0.5
allow 3
sleep 0.5
shares "nice 19, 0 and 0 on two CPUs" 3 0:0.1 0.9:1.05
done_with
# So it is with a group's weight.
tree light heavy
echo 1 >$root/light/cpu.weight
echo 10000 >$root/heavy/cpu.weight
hogs $root/light 0 1
hogs $root/heavy 1 2
sleep 0.5
pids=$(cat $root/light/cgroup.procs $root/heavy/cgroup.procs | tr '\n' ' ')
allow 3
sleep 0.5
shares "groups of weight 1, one hog, and 10000, two hogs, on two CPUs" 3 0:0.1 0.9:1.05
pids=
clear_all
# Three of one nice value take turns on two CPUs.
for _ in 1 2 3; do hog 0-1 0; done
sleep 0.5
shares "three hogs on two CPUs" 4 0.55:0.8
done_with

# Two caches: as many tasks on one as on the other, whether a shell has forked them or they began on one cache.
for _ in $(seq 12); do hog 0-3 0; done
sleep 1
shares "12 hogs started by a shell, on four CPUs" 3 0.24:0.45
done_with
for cpu in 0 1 0 1 0 1 0 1 2 3; do hog $cpu 0; done
sleep 0.5
allow f
sleep 1
shares "10 hogs on four CPUs, 8 of them began on one cache" 3 0.3:0.55
done_with

# Last, since 6.17 attaches its programs to schedule() for a limit.
tree limited
echo "50000 100000" >$root/limited/cpu.max
for cpu in 0 1 2 3; do idle_hog $cpu; done
sleep 0.5
waits "SCHED_IDLE hogs on all CPUs" 300
# There a task that has a limit can't move to another CPU before its next turn.
most=300
older_than 6.18 && most=2000
# shellcheck disable=SC2016 # the inner shell's
waits "the same under a limit" $most sh -c 'echo 0 >"$0"; exec "$@"' $root/limited/cgroup.procs
done_with
clear_all

[ "${CLASS:-}" != kernel ] || exit 0
finish
