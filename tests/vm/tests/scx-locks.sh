# A throttled task keeps no locks of the kernel. Six tasks under 10 ms/1 s create and remove files in
# a folder; one without a limit that does the same there waits as long as under the kernel's own
# class, times five at most, and 100 ms. Tasks join a throttled group; one that moves between two
# others waits for cgroup_mutex less than 100 ms. So does who takes the CPU from twenty throttled tasks:
# the write of cpuset.cpus waits for each of them. And the group gets its quota, no more. Under --icount.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=4}"
root=/sys/fs/cgroup/locks-test
# canaries CLASS: to `files` and `moves` the longest waits in us.
canaries() {
    tree limited a b
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
    clear_all
    tree limited
    echo +cpuset >$root/cgroup.subtree_control
    echo 0 >$root/limited/cpuset.cpus
    echo "10000 1000000" >$root/limited/cpu.max
    hogs $root/limited 0,1 20
    sleep 2
    from_us=$(now_us)
    echo 1 >$root/limited/cpuset.cpus
    cpuset=$(($(now_us) - from_us))
    clear_all
    echo "locks: $1: longest wait $files us for a folder, $moves us for cgroup_mutex, $cpuset us for a cpuset"
}

mkdir -p d
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
canaries "the kernel's own class"
own=$files
# Before 6.18 the kernel's own class puts tasks aside with their locks held.
[ "$own" -le 20000 ] || own=20000
load
canaries scx_reveille
# Who comes while the six run on their 10 ms, 5 ms on each of two CPUs, stands in line behind them, under
# either scheduler: that is no lock kept by a throttled task.
[ "$own" -ge 1000 ] || own=1000
[ "$files" -le $((own * 5)) ] || fail "a throttled task keeps a folder's lock for $files us"
[ "$moves" -le 100000 ] || fail "a task that joins a throttled group keeps cgroup_mutex for $moves us"
[ "$cpuset" -le 100000 ] || fail "twenty throttled tasks keep a write of cpuset.cpus for $cpuset us"
[ "$used" -le 12000 ] && [ "$used" -ge 6000 ] || fail "$used us per s, 10000 are due"
finish
