# `reveille compare --on host --with scx:+SIS_SHORT`: scx_reveille is loaded for the variant's
# runs and for no other, and gone after them, also after Ctrl-C and a kill of reveille.
set -eu
. /lib/functions.sh

fail() {
    echo "scx-compare: $*"
    exit 1
}
no_loader() { ! pidof scx_reveille >/dev/null || die "the loader is left: $(pidof scx_reveille)"; }
# By name, so that a command in the background is reveille itself and no shell around it.
compare="reveille compare --on host --base v6.2 --workload context_switch1 --load 1 --warmup 100ms"

[ "$(state)" = disabled ] || die "something is loaded: $(cat $sched_ext/root/ops)"
before=$(cat $sched_ext/enable_seq)
$compare --with scx:+SIS_SHORT --with scx: --repeats 2 --duration 1s --json >"$OUT/compare.json" &
measuring=$!
seen=
while kill -0 $measuring 2>/dev/null; do
    ops=$(cat $sched_ext/root/ops 2>/dev/null || true)
    [ -z "$ops" ] || seen=$ops
    sleep 0.05
done
wait $measuring || die "it ended with $?"
[ "$(state)" = disabled ] || die "the scheduler is left behind: $(state)"
no_loader
case $seen in reveille*) ;; *) die "it was never loaded: '$seen'" ;; esac
# Two variants with two repeats: loaded four times, and not for the baseline.
loads=$(($(cat $sched_ext/enable_seq) - before))
[ $loads = 4 ] || die "loaded $loads times, not 4"
for found in '"command": "scx_reveille --base v6.2 --with +SIS_SHORT"' \
    '"command": "scx_reveille --base v6.2"' '"variant": "scx:+SIS_SHORT"' '"partial": false'; do
    grep -qF -e "$found" "$OUT/compare.json" || die "no $found in $(cat "$OUT/compare.json")"
done

# A base under scx_reveille: both sides are.
before=$(cat $sched_ext/enable_seq)
reveille compare --on host --base scx:v6.2 --with +SIS_SHORT --workload context_switch1 --load 1 \
    --repeats 1 --warmup 100ms --duration 500ms || die "--base scx:v6.2 ended with $?"
loads=$(($(cat $sched_ext/enable_seq) - before))
[ $loads = 2 ] || die "--base scx:v6.2: loaded $loads times, not 2"
until_state disabled

# Stopped while the variant is measured: nothing is left, and it says so.
$compare --with scx: --repeats 1 --duration 4s >log 2>&1 &
measuring=$!
until_state enabled
kill -TERM $measuring
code=0
wait $measuring || code=$?
[ $code = 130 ] || die "SIGTERM: exit code $code: $(cat log)"
[ "$(state)" = disabled ] || die "SIGTERM: the scheduler is left behind"
no_loader

# One of somebody else's is never thrown out.
scx_reveille 2>other &
other=$!
until_state enabled
code=0
$compare --with scx:+SIS_SHORT --repeats 1 --duration 1s 2>refused || code=$?
[ $code = 2 ] || die "beside another scheduler it ended with $code"
grep -q 'another sched_ext scheduler is loaded: reveille' refused || die "$(cat refused)"
[ "$(state)" = enabled ] || die "the other scheduler was thrown out"

# Whoever ends it while a variant is measured, the run has no result.
kill -TERM $other
wait $other || die "the other ended with $?: $(cat other)"
until_state disabled
$compare --with scx: --repeats 1 --duration 5s >log 2>&1 &
measuring=$!
until_state enabled
kill -KILL "$(pidof scx_reveille)"
code=0
wait $measuring || code=$?
[ $code = 1 ] || die "a loader that was killed: exit code $code: $(cat log)"
grep -q 'scx_reveille did not schedule until the end of the run' log || die "$(cat log)"
until_state disabled

# Killed itself, it leaves the kernel's own scheduler in charge.
$compare --with scx: --repeats 1 --duration 4s >log 2>&1 &
measuring=$!
until_state enabled
kill -KILL $measuring
wait $measuring || true
until_state disabled
no_loader
echo "scx-compare: loaded as $seen for its runs, and gone after them"
