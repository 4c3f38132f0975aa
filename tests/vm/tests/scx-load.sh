# scx_reveille loads and passes the verifier, schedules pipes, sleepers and storms without a
# stall (README.md says why the watchdog has 10 s), is asked and set while it runs, refuses a second
# instance, and leaves the kernel's own scheduler in charge however it ends.
set -eu

: "${STORM_SECONDS:=6}"
state() { cat /sys/kernel/sched_ext/state; }
fail() {
    echo "scx-load: $*"
    exit 1
}
# until_state STATE: within 60 s.
until_state() {
    for _ in $(seq 600); do
        [ "$(state)" = "$1" ] && return
        sleep 0.1
    done
    fail "the state is $(state), not $1"
}
load() {
    scx_reveille --watchdog-ms 10000 "$@" 2>log &
    loader=$!
    until_state enabled
    # Ready when it answers.
    for _ in $(seq 100); do
        [ -S /run/scx_reveille/socket ] && return
        sleep 0.1
    done
    fail "no socket: $(cat log)"
}
ended() {
    code=0
    wait "$loader" || code=$?
    cat log
    until_state disabled
}

load
[ "$(cat /sys/kernel/sched_ext/root/ops)" = reveille ] || fail "another scheduler is loaded"
stat -c %a /run/scx_reveille /run/scx_reveille/socket | tr '\n' ' ' | grep -q '^700 600 ' ||
    fail "the socket is open for others"
code=0
scx_reveille 2>second || code=$?
[ "$code" = 2 ] && grep -q 'another sched_ext scheduler is running: reveille' second ||
    fail "a second instance ended with $code: $(cat second)"
scx_reveille --monitor 1 --json >monitor &
monitor=$!
storm --seconds "$STORM_SECONDS" affinity fork cgroup
kill -INT $monitor
wait $monitor || fail "--monitor ended with $?"
grep -q '"wakeups":[1-9]' monitor || fail "no wakeup was counted: $(cat monitor)"
reveille bench schbench -m 2 -t 2 -r 2 -n 1 --json >bench.json || fail "schbench ended with $?"
for load in "hackbench --load 1 --param fds=5" "context_switch1 --load 4"; do
    # shellcheck disable=SC2086 # an option is a word
    reveille compare --on host --workload $load --with cpus=0 --repeats 1 --warmup 0ms \
        --duration 2s --json >load.json || fail "$load ended with $?"
    echo "scx-load: $load: done"
done
scx_reveille set +SWQUEUE -SIS_UTIL || fail "set was refused"
storm --seconds "$STORM_SECONDS" fork affinity
code=0
scx_reveille set +EEVDF 2>refused || code=$?
[ "$code" = 2 ] && grep -q 'means nothing' refused || fail "set +EEVDF: $code, $(cat refused)"
scx_reveille set +SWQUEUE_SHARD,+SIS_SHORT,+SIS_UTIL
storm --seconds "$STORM_SECONDS" hotplug
storm --seconds $((STORM_SECONDS * 2))
[ "$(state)" = enabled ] || fail "the kernel has ended it: $(cat log)"
scx_reveille --monitor 1 --json >monitor & sleep 3; kill -INT $!; tail -n 1 monitor
kill -TERM "$loader"
ended
[ "$code" = 0 ] || fail "SIGTERM: exit code $code"
[ ! -e /run/scx_reveille/socket ] || fail "the socket is left behind"

load --base v4.5
storm --seconds "$STORM_SECONDS" fork affinity
kill -HUP "$loader"
ended
[ "$code" = 0 ] || fail "SIGHUP: exit code $code"

load --base v5.13 --with +SIS_AGE
storm --seconds "$STORM_SECONDS" fork affinity
kill -KILL "$loader"
ended
storm --seconds 1 fork

scx_reveille --exit-after 2 --stats 1 >stats 2>log || fail "--exit-after: $(cat log)"
grep -q 'wakeups/s' stats || fail "no statistics: $(cat stats)"
until_state disabled
echo "scx-load: all ends well"
