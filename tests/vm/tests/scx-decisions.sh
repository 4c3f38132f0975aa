# The same decision: wakeups recorded under scx_reveille, with the state that each was decided
# from, are decided again by the native build that the simulator uses. RECORDS for each set of
# features; pipes, storms and hogs wake and are woken meanwhile.
set -eu

: "${RECORDS:=10000}"

# By name, so that a command in the background is reveille itself and no shell around it. Runs on
# all CPUs come first, then those on one.
compare="reveille compare --on host --repeats 1 --warmup 0ms --with cpus=0"

# Wakers of many kinds, until the recording is full: pairs fewer and more than CPUs, one
# waker for many, crowds, tasks that may run on few CPUs, new ones, sleepers and hogs.
wake() {
    cpus=$(nproc)
    $compare --workload context_switch1 --load $((cpus / 4)) --duration 1000s >/dev/null 2>&1 &
    pairs=$!
    turn=0
    while kill -0 "$loader" 2>/dev/null; do
        case $((turn % 5)) in
            0) reveille bench schbench --era classic -m 2 -t $((cpus / 2)) -r 1 -c 300 ;;
            1) $compare --workload hackbench --load 1 --param fds=8 --duration 1s ;;
            # So short, a storm may not come to anything.
            2) storm --seconds 1 affinity fork || true ;;
            3) $compare --workload context_switch1 --load $((cpus * 2)) --duration 1s ;;
            4) $compare --workload context_switch1 --load 1 --duration 1s ;;
        esac >/dev/null 2>&1
        turn=$((turn + 1))
    done
    kill -INT $pairs
    wait $pairs || true
}

decide() {
    rm -f decisions
    scx_reveille "$@" --record decisions --record-limit "$RECORDS" 2>log &
    loader=$!
    wake
    code=0
    wait $loader || code=$?
    [ $code = 0 ] || {
        cat log
        exit 1
    }
    echo "decisions of $*, at $(cut -d. -f1 /proc/uptime) s:"
    scx_reveille replay decisions
    scx_reveille replay --json decisions >"$OUT/decisions.$(echo "$*" | tr -c 'A-Za-z0-9.\n' _).json"
}

decide --base v6.4
decide --base v6.2 --with +SIS_SHORT
decide --base v6.4 --with +SWQUEUE
decide --base v5.13
decide --base v5.13 --with +SIS_AGE
decide --base v4.5
decide --base v4.5 --with +SIS_FIRST
decide --base v6.4 --with -WA_IDLE,-RECENT_USED_CPU
