# What wakeups cost: loads the schedulers of /etc/cost one after the other, has pairs of tasks
# wake each other under each, and brings back what the kernel counted for every BPF program
# meanwhile. A line of /etc/cost: NAME COMMAND...; the command's last word may be an object
# for bpftool. Boot it with --icount: tests/vm/cost.sh does.
set -eu

export PATH=$PATH:/usr/sbin:/sbin
: "${WARMUP_MS:=100}"
. /etc/cost.conf # WINDOW_MS, the regimes: NAME=PAIRS, and the pairs' task group

fail() {
    echo "cost: $*"
    exit 1
}
state() { cat /sys/kernel/sched_ext/state; }
until_state() {
    # The verifier may take a minute for a large scheduler, emulated.
    for _ in $(seq 1200); do
        [ "$(state)" = "$1" ] && return
        [ "$1" = disabled ] || [ -z "$loader" ] || kill -0 "$loader" 2>/dev/null || break
        sleep 0.1
    done
    cat log
    fail "$name: the state is $(state), not $1"
}
programs() { bpftool prog show --json >"$1"; }

echo 1 >/proc/sys/kernel/sched_schedstats
# The kernel has left-over work after its boot that makes turns of CPUs long.
sleep 4
at=/sys/fs/cgroup
for part in $(echo "$GROUP" | tr / ' '); do
    echo +cpu >$at/cgroup.subtree_control
    at=$at/$part
    mkdir "$at"
done
: >"$OUT/order"
while read -r name command; do
    case $command in
        *.bpf.o)
            bpftool struct_ops register "$command" >log 2>&1 || { cat log; fail "$name"; }
            loader=
            ;;
        *)
            $command >log 2>&1 &
            loader=$!
            ;;
    esac
    until_state enabled
    # Loaders have things to do at first.
    sleep 0.3
    cat /sys/kernel/sched_ext/root/ops >"$OUT/$name.ops"
    for regime in $REGIMES; do
        programs "$OUT/$name.${regime%=*}.before"
        sh -c 'echo 0 >"$1/cgroup.procs"; shift; exec wakeups "$@"' wakeups $at \
            "${regime#*=}" "$WARMUP_MS" "$WINDOW_MS" >"$OUT/$name.${regime%=*}.wakeups"
        programs "$OUT/$name.${regime%=*}.after"
        [ "$(state)" = enabled ] || fail "$name: the kernel has ended it: $(cat log)"
    done
    if [ -n "$loader" ]; then
        kill -INT "$loader"
        wait "$loader" || true
    else
        bpftool struct_ops unregister name "$name" >log 2>&1 || { cat log; fail "$name"; }
    fi
    until_state disabled
    cp log "$OUT/$name.log"
    echo "$name" >>"$OUT/order"
    echo "cost: $name: $(cat "$OUT/$name".*.wakeups | tr '\n' ' ')"
done </etc/cost
