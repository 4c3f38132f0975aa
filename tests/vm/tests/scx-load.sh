# scx_reveille loads and passes the verifier, schedules pipes, sleepers and storms without a
# stall (README.md says why the watchdog has 10 s), is asked and set while it runs, refuses a second
# instance, and leaves the kernel's own scheduler in charge however it ends.
set -eu
. /lib/functions.sh

: "${STORM_SECONDS:=6}"

load
case $(cat $sched_ext/root/ops) in reveille_[0-9]*) ;; *) die "another scheduler is loaded" ;; esac
stat -c %a /run/scx_reveille /run/scx_reveille/socket | tr '\n' ' ' | grep -q '^700 600 ' ||
    die "the socket is open for others"
[ "$(stat -c %a /run/scx/root/stats)" = 600 ] || die "there is no socket for scxtop"
code=0
scx_reveille 2>second || code=$?
[ "$code" = 2 ] && grep -q 'another sched_ext scheduler is running: reveille' second ||
    die "a second instance ended with $code: $(cat second)"
scx_reveille --monitor 1 --json >monitor &
monitor=$!
storm --seconds "$STORM_SECONDS" affinity fork cgroup
kill -INT $monitor
wait $monitor || die "--monitor ended with $?"
grep -q '"wakeups":[1-9]' monitor || die "no wakeup was counted: $(cat monitor)"
reveille bench schbench -m 2 -t 2 -r 2 -n 1 --json >bench.json || die "schbench ended with $?"
for load in "hackbench --load 1 --param fds=5" "context_switch1 --load 4"; do
    # shellcheck disable=SC2086 # an option is a word
    reveille compare --on host --workload $load --with cpus=0 --repeats 1 --warmup 0ms \
        --duration 2s --json >load.json || die "$load ended with $?"
    echo "scx-load: $load: done"
done
scx_reveille set +SWQUEUE -SIS_UTIL || die "set was refused"
storm --seconds "$STORM_SECONDS" fork affinity
code=0
scx_reveille set -EEVDF 2>refused || code=$?
[ "$code" = 2 ] && grep -q 'means nothing' refused || die "set -EEVDF: $code, $(cat refused)"
scx_reveille set +SWQUEUE_SHARD,+SIS_SHORT,+SIS_UTIL
storm --seconds "$STORM_SECONDS" hotplug
storm --seconds $((STORM_SECONDS * 2))
still_loaded storms
scx_reveille --monitor 1 --json >monitor & sleep 3; kill -INT $!; tail -n 1 monitor
kill -TERM "$loader"
ended 0
[ ! -e /run/scx_reveille/socket ] && [ ! -e /run/scx/root/stats ] || die "the socket is left behind"

load --base v4.5
storm --seconds "$STORM_SECONDS" fork affinity
kill -HUP "$loader"
ended 0

load --base v5.13 --with +SIS_AGE
storm --seconds "$STORM_SECONDS" fork affinity
kill -KILL "$loader"
ended 137
storm --seconds 1 fork

scx_reveille --exit-after 2 --stats 1 >stats 2>log || die "--exit-after: $(cat log)"
grep -q 'wakeups/s' stats || die "no statistics: $(cat stats)"
until_state disabled
echo "scx-load: all ends well"
exit $failed
