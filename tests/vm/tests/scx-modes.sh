# The presets of README.md for scx_loader's modes load, and do what they are for: beside two hogs per
# CPU, the waits of a task that wakes every millisecond, and switches per second. Under --icount.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=6}"
root=/sys/fs/cgroup/modes-test
mkdir -p d
switches() { awk '$1 == "ctxt" { print $2 }' /proc/stat; }
measure() {
    # Tasks of the root group weigh the same: no group is in the way.
    task hogs $(($(nproc) * 2)) 0 &
    sleep 1
    before=$(switches)
    task wakes d "$SECONDS_EACH" >longest & waker=$!
    sleep $((SECONDS_EACH - 1))
    read -r _ waited turns _ <"/proc/$waker/schedstat"
    wait $waker
    mean_us=$((waited / turns / 1000))
    rate=$((($(switches) - before) / SECONDS_EACH))
    for pid in $(pidof task); do kill -9 "$pid"; done
    sleep 1
    echo "modes: $1: waits of $mean_us us in the mean, $(cat longest) us at most, $rate switches per s"
}

measure "the kernel's own class"
while read -r mode options; do
    # shellcheck disable=SC2086 # an option is a word
    load $options
    measure "$mode ($options)"
    still_loaded "$mode"
    kill -INT $loader
    ended 0
    eval "${mode}_us=$mean_us ${mode}_rate=$rate"
done <<END
auto
v64 --base v6.4
gaming --slice-us 1000
lowlatency --slice-us 500
powersave --slice-us 10000 --sleeper-credit-us 3000
server --slice-us 10000
END
[ $lowlatency_rate -ge $auto_rate ] || fail "lowlatency switches less often than auto"
[ $server_rate -le $auto_rate ] || fail "server switches more often than auto"
[ $server_us -ge $auto_us ] || fail "in auto wakees wait longer than in server"
exit $failed
