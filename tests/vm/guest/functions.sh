# What tests share, as /lib/functions.sh of the guest. A test sets `root`, its task group.

test_name=${0##*/[0-9][0-9]-}
failed=0
sched_ext=/sys/kernel/sched_ext

# fail WORDS: the test goes on, and ends with `exit $failed`. die WORDS: it ends here.
fail() {
    echo "$test_name: FAILED: $*"
    failed=1
}
die() {
    fail "$@"
    exit 1
}

state() { cat $sched_ext/state; }
# until_state STATE: within 60 s.
until_state() {
    for _ in $(seq 600); do
        [ "$(state)" = "$1" ] && return
        sleep 0.1
    done
    die "the state is $(state), not $1"
}
# load OPTION...: starts scx_reveille; it answers when this returns. README.md has why 10 s.
load() {
    rm -f /run/scx_reveille/socket
    scx_reveille --watchdog-ms "${WATCHDOG_MS:-10000}" "$@" 2>log &
    loader=$!
    for _ in $(seq 1200); do
        [ -S /run/scx_reveille/socket ] && return
        kill -0 $loader 2>/dev/null || die "it is not loaded: $(cat log)"
        sleep 0.1
    done
    die "no socket: $(cat log)"
}
# ended CODE: the loader has ended, or will, with this exit code; what it said is shown.
ended() {
    code=0
    wait $loader || code=$?
    cat log
    until_state disabled
    [ "$code" = "$1" ] || fail "exit code $code, not $1"
}
# ends_within PID SECONDS: whether a child of this shell does.
ends_within() {
    for _ in $(seq $(($2 * 10))); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}
still_loaded() {
    [ "$(state)" = enabled ] && return
    # Its log ends with the kernel's dump.
    ends_within $loader 10 || true
    die "$*: the kernel has ended the scheduler: $(cat log)"
}
# finish: it has run until here; the test ends.
finish() {
    still_loaded "in the end"
    kill -INT $loader
    ended 0
    exit $failed
}

used_us() { awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"; }
# No %d: of more than 2,147 s it makes nothing.
now_us() { awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime; }
# part_of GROUP OTHER SECONDS: prints the part that the first has of what both use in that time.
part_of() {
    first=$(used_us "$1") other=$(used_us "$2")
    sleep "$3"
    awk -v a=$(($(used_us "$1") - first)) -v b=$(($(used_us "$2") - other)) 'BEGIN { printf "%.6f", a / (a + b) }'
}
# between LEAST VALUE MOST: whether it is; decimal numbers.
between() { awk -v least="$1" -v value="$2" -v most="$3" 'BEGIN { exit value < least || value > most }'; }
# schedstats GROUP: a line for each task: its id, CPU time and wait in ns, and how often it was put on a CPU.
schedstats() {
    for pid in $(cat "$1/cgroup.procs"); do
        read -r stat <"/proc/$pid/schedstat"
        echo "$pid $stat"
    done
}

# tree [GROUP...]: root, and groups in it with their own weights and limits.
tree() {
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    mkdir -p "$root"
    [ $# -eq 0 ] || echo +cpu >"$root/cgroup.subtree_control"
    for group in "$@"; do mkdir "$root/$group"; done
}
# hogs GROUP CPUS N [NICE]: tasks that compute on CPUs of this list.
hogs() {
    sh -c 'echo 0 >"$1"; exec taskset -c "$2" task hogs "$3" "$4"' hogs "$1/cgroup.procs" "$2" "$3" "${4:-0}" &
}
# extreme_weights: groups light and heavy of weights 1 and 10000, with hogs on CPU 0.
extreme_weights() {
    tree light heavy
    echo 1 >"$root/light/cpu.weight"
    echo 10000 >"$root/heavy/cpu.weight"
    hogs "$root/light" 0 2
    hogs "$root/heavy" 0 3
    sleep 1
}
# cpu_goes CPU LEFT SECONDS: takes it offline, within so long; LEFT are then online.
cpu_goes() {
    echo 0 >"/sys/devices/system/cpu/cpu$1/online" & going=$!
    ends_within $going "$3" && [ "$(cat /sys/devices/system/cpu/online)" = "$2" ] ||
        fail "CPU $1 does not go while tasks wait for it"
}
kill_all() { for pid in $(find "$1" -name cgroup.procs -exec cat {} +); do kill -9 "$pid" || true; done; }
# clear_all: root is gone when it returns. Under a limit the killed, too, may wait for quota.
clear_all() {
    kill_all "$root"
    for _ in $(seq 300); do
        find "$root" -depth -type d -exec rmdir {} + 2>/dev/null && return
        sleep 0.1
    done
    fail "killed tasks do not end"
}
