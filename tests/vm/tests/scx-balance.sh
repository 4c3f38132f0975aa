# Who gets which CPU, and how soon: a task that wakes beside SCHED_IDLE ones, also under a limit; hogs beside
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
tree limited
echo "50000 100000" >$root/limited/cpu.max
for cpu in 0 1 2 3; do idle_hog $cpu; done
sleep 0.5
waits "SCHED_IDLE hogs on all CPUs" 300
# shellcheck disable=SC2016 # the inner shell's
waits "the same under a limit" 300 sh -c 'echo 0 >"$0"; exec "$@"' $root/limited/cgroup.procs
done_with
clear_all

[ "${CLASS:-}" != kernel ] || exit 0
finish
