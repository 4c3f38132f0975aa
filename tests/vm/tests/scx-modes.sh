# The presets of README.md for scx_loader's modes load, and do what they are for: beside two hogs per
# CPU, the longest wait of a task that wakes every millisecond, and switches per second. Under --icount.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=3}"
root=/sys/fs/cgroup/modes-test
mkdir -p d
switches() { awk '$1 == "ctxt" { print $2 }' /proc/stat; }
measure() {
    # Tasks of the root group weigh the same: no group is in the way.
    task hogs $(($(nproc) * 2)) 0 &
    sleep 1
    before=$(switches)
    waited=$(task wakes d "$SECONDS_EACH")
    rate=$((($(switches) - before) / SECONDS_EACH))
    for pid in $(pidof task); do kill -9 "$pid"; done
    sleep 1
    echo "modes: $1: longest wait $waited us, $rate switches per s"
}

measure "the kernel's own class"
while read -r mode options; do
    # shellcheck disable=SC2086 # an option is a word
    load $options
    measure "$mode ($options)"
    still_loaded "$mode"
    kill -INT $loader
    ended 0
    eval "${mode}_us=$waited ${mode}_rate=$rate"
done <<END
auto
v64 --base v6.4
gaming --base v6.4 --slice-us 2000 --wakeup-granularity-us 500
lowlatency --base v6.4 --slice-us 1000 --wakeup-granularity-us 0
powersave --slice-us 10000 --sleeper-credit-us 3000
server --slice-us 10000
END
[ $lowlatency_us -le $auto_us ] || fail "lowlatency waits longer than auto"
[ $server_rate -le $auto_rate ] || fail "server switches more often than auto"
exit $failed
