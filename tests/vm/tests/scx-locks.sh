# A throttled task keeps no locks of the kernel. Six tasks under 10 ms/1 s create and remove files in
# a folder; one without a limit that does the same there waits as long as under the kernel's own
# class, times five at most. Tasks join a throttled group; one that moves between two others waits for
# cgroup_mutex less than 100 ms. And the group gets its quota, no more. Under --icount.
set -eu

: "${SECONDS_EACH:=4}"
root=/sys/fs/cgroup/locks-test
failed=0
fail() {
    echo "locks: FAILED: $*"
    failed=1
}
used_us() { awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"; }
clear_all() {
    for pid in $(cat $root/limited/cgroup.procs); do kill -9 "$pid"; done
    # Under the kernel's own class the killed wait for their quota, too.
    for _ in $(seq 100); do
        find "$root" -depth -type d -exec rmdir {} + 2>/dev/null && return
        sleep 0.3
    done
    fail "tasks of the group do not end"
}
# canaries CLASS: to `files` and `moves` the longest waits in us.
canaries() {
    mkdir $root
    echo +cpu >$root/cgroup.subtree_control
    mkdir $root/limited $root/a $root/b
    echo "10000 1000000" >$root/limited/cpu.max
    for _ in 1 2 3 4 5 6; do sh -c 'echo 0 >"$1"; exec task files d' files $root/limited/cgroup.procs & done
    sleep 1
    before=$(used_us $root/limited)
    files=$(task canary d "$SECONDS_EACH")
    sleep 4
    echo "locks: $1: used $((($(used_us $root/limited) - before) / (SECONDS_EACH + 4))) us per s, 10000 are due"
    used=$((($(used_us $root/limited) - before) / (SECONDS_EACH + 4)))
    task joins $root/limited "$SECONDS_EACH" & joins=$!
    moves=$(task moves $root/a $root/b "$SECONDS_EACH")
    wait $joins
    echo "locks: $1: longest wait $files us for a folder, $moves us for cgroup_mutex"
    clear_all
}

mkdir d
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
canaries "the kernel's own class"
own=$files
scx_reveille --watchdog-ms 10000 2>log &
loader=$!
for _ in $(seq 1200); do
    [ -S /run/scx_reveille/socket ] && break
    kill -0 $loader || { cat log; exit 1; }
    sleep 0.1
done
canaries scx_reveille
# Half a millisecond more or less is chance: a switch of tasks takes tens of microseconds here.
[ "$files" -le $((own * 5 + 500)) ] || fail "a throttled task keeps a folder's lock for $files us"
[ "$moves" -le 100000 ] || fail "a task that joins a throttled group keeps cgroup_mutex for $moves us"
[ "$used" -le 12000 ] && [ "$used" -ge 6000 ] || fail "$used us per s, 10000 are due"
[ "$(cat /sys/kernel/sched_ext/state)" = enabled ] || fail "the kernel has ended the scheduler"
kill -INT $loader
wait $loader || fail "exit code $?: $(cat log)"
exit $failed
