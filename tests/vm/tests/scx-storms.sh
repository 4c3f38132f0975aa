# The storms of README.md's table, under the kernel's own class and then under scx_reveille: of a task
# without a limit that wakes every millisecond and creates a file, the longest wait; of the groups in
# the storm, what is said. Under --icount. The watchdog has 10 s.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=3}" "${CLASSES:=kernel scx_reveille}" "${STORMS:=weights deep many quota moves locks hotplug}"
root=/sys/fs/cgroup/storms-test
mkdir -p d

# row NAME WORDS: `waited` is in us.
row() {
    awk -v class="$class" -v name="$1" -v waited="$waited" -v words="$2" 'BEGIN {
        printf "storms: | %s | %s | %.1f ms | %s |\n", name, class, waited / 1000, words
    }'
    [ "$class" = kernel ] || still_loaded "$1"
}
canary() { waited=$(task wakes d "${1:-$SECONDS_EACH}"); }
# share GROUP COMMAND...: runs it, and says what the group used, in ms per s.
share() {
    before=$(used_us "$1") from_us=$(now_us) of=$1
    shift
    "$@"
    shared=$(awk -v used=$(($(used_us "$of") - before)) -v took=$(($(now_us) - from_us)) 'BEGIN {
        printf "%.2f", 1000 * used / took }')
}
# at_most DUE: ms per s of `shared`, more or less the phase of a period.
at_most() {
    awk -v got="$shared" -v due="$1" 'BEGIN { exit got > due * 1.2 }' || [ "$class" = kernel ] ||
        fail "$storm: $shared ms/s, $1 due"
}

weights() {
    extreme_weights
    share $root/light canary 12
    row "weights 1 and 10000 on a CPU, 12 s" "weight 1 had $shared ms/s"
    clear_all
}
deep() {
    tree
    echo "10000 100000" >$root/cpu.max
    inner=$root
    for _ in $(seq 40); do
        echo +cpu >"$inner/cgroup.subtree_control"
        inner=$inner/d
        mkdir "$inner"
        echo 50 >"$inner/cpu.weight"
    done
    hogs "$inner" 0-1 2
    sleep 1
    share $root canary
    at_most 100
    row "depth 40 below 10 ms/100 ms" "$shared ms/s, 100 due"
    clear_all
}
many() {
    tree
    echo +cpu >$root/cgroup.subtree_control
    seq 3000 | sed "s|^|$root/g|" | xargs mkdir
    for i in $(seq 1 30 3000); do
        echo $((i % 900 + 10)) >$root/g$i/cpu.weight
        hogs $root/g$i 0-1 1
    done
    echo "10000 100000" >$root/g1/cpu.max
    sleep 1
    share $root/g1 canary
    row "3,000 groups, 100 hogs of as many weights" "the one with 10 ms/100 ms had $shared ms/s"
    clear_all
}
quota() {
    tree small
    hogs $root/small 0-1 4
    ( task flip $root/small/cpu.max "$SECONDS_EACH" "2000 20000" "3000 10000" "1000 10000" >flips ) &
    flips=$!
    canary $((SECONDS_EACH - 1))
    wait $flips
    echo "10000 100000" >$root/small/cpu.max
    sleep 1
    share $root/small sleep "$SECONDS_EACH"
    at_most 100
    row "cpu.max written $(($(cat flips) / SECONDS_EACH)) times a second" "then $shared ms/s, 100 due"
    clear_all
}
moves() {
    storm --seconds "$SECONDS_EACH" --stall 30 cgroup affinity >said 2>&1 & moving=$!
    canary $((SECONDS_EACH - 1))
    code=0
    wait $moving || code=$?
    [ $code = 0 ] || { cat said; fail "the storm of groups under $class"; }
    row "moves between limited groups, with affinities" "no task stalled"
}
locks() {
    tree limited
    echo "10000 1000000" >$root/limited/cpu.max
    for _ in 1 2 3 4 5 6; do sh -c 'echo 0 >"$1"; exec task files d' files $root/limited/cgroup.procs & done
    sleep 1
    share $root/limited canary
    at_most 10
    row "a folder's lock, wanted by six tasks in 10 ms/1 s" "$shared ms/s, 10 due"
    clear_all
}
hotplug() {
    tree limited
    echo "10000 1000000" >$root/limited/cpu.max
    hogs $root/limited 0-1 6
    sleep 1
    (
        n=0
        while [ ! -e stop ]; do
            echo 0 >/sys/devices/system/cpu/cpu1/online
            echo 1 >/sys/devices/system/cpu/cpu1/online
            n=$((n + 1))
        done
        echo $n >plugged
    ) & plug=$!
    share $root/limited canary
    : >stop
    wait $plug
    rm stop
    at_most 10
    row "a CPU off and on $(cat plugged) times, with throttled tasks" "$shared ms/s, 10 due"
    clear_all
}

for class in $CLASSES; do
    [ $class = kernel ] || load
    for storm in $STORMS; do $storm; done
done
[ "$class" = kernel ] || finish
exit $failed
