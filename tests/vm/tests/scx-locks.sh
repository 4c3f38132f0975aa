# A throttled task keeps no locks of the kernel. Six tasks under 10 ms/1 s create and remove files in
# a folder; one without a limit that does the same there waits at most five times as long as under the
# kernel's own class, each the longest wait of REPEATS times SECONDS_EACH in this boot. Tasks join a throttled
# group; one that moves between two others waits for cgroup_mutex five times as long at most, and less than
# 100 ms. A write of cpuset.cpus that takes the CPU from twenty throttled tasks waits for each of them: less
# than 100 ms. And the group gets its quota, no more. Under --icount.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=4}" "${REPEATS:=3}"
root=/sys/fs/cgroup/locks-test
# canaries CLASS: to `files` and `moves` the longest waits in us.
canaries() {
    tree limited a b
    echo "10000 1000000" >$root/limited/cpu.max
    for _ in 1 2 3 4 5 6; do sh -c 'echo 0 >"$1"; exec task files d' files $root/limited/cgroup.procs & done
    sleep 1
    before=$(used_us $root/limited)
    files=0 each=
    for _ in $(seq "$REPEATS"); do
        waited=$(task canary d "$SECONDS_EACH")
        each="$each $waited"
        [ $waited -le $files ] || files=$waited
    done
    used=$((($(used_us $root/limited) - before) / (SECONDS_EACH * REPEATS)))
    echo "locks: $1: for a folder$each us; the group used $used us per s, 10000 are due"
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
# Before 6.18 the kernel's own class parks tasks with their locks held.
most=$((files * 5))
[ $most -le 100000 ] || most=100000
# A task that comes while the six use their 10 ms on two CPUs gets the lock after them, after up to 5 ms.
# Whether that happens within a run is chance under either scheduler, so no bound below it is sound.
[ $most -ge 5000 ] || most=5000
most_moves=$((moves * 5))
[ $most_moves -le 100000 ] || most_moves=100000
load
canaries scx_reveille
[ "$files" -le $most ] || fail "a throttled task keeps a folder's lock for $files us, $most at most"
[ "$moves" -le $most_moves ] ||
    fail "a task that joins a throttled group keeps cgroup_mutex for $moves us, $most_moves at most"
[ "$cpuset" -le 100000 ] || fail "twenty throttled tasks keep a write of cpuset.cpus for $cpuset us"
[ "$used" -le 12000 ] && [ "$used" -ge 6000 ] || fail "$used us per s, 10000 are due"
finish
