# Settings drawn at random do not get scx_reveille ejected, and limits hold under them: weights, nice
# values, cpu.max down to 1 ms per 1 s, cpu.idle, sets of CPUs, and up to 1,000 tasks in each of three
# groups, two of them within a fourth. A group that has a CPU to itself uses at least half its quota, and
# CPUs that a group without a limit wants are busy. Then all settings are drawn again while the same tasks
# run, and a storm. Seed 92 has 1,000 tasks in 1 ms per 1 s; seed 7 takes a CPU away from tasks of throttled
# groups. Under --icount. The watchdog has 4 s, so that a task may wait 1 s; with the default, 30 s, the
# turns that it then gets are 7.5 times rarer.
set -eu
. /lib/functions.sh

: "${SEEDS:=7 92}" "${ROUNDS:=1}" "${ROUND_SECONDS:=5}"
# No new round begins after this many seconds of guest time.
: "${MOST_SECONDS:=100000}" "${WATCHDOG_MS:=4000}"
# A short turn takes a task TURN_US on average: 10 us, the return to user mode, and what the emulator adds. It
# runs one CPU at a time, so that where both compute a turn has the other CPU's time in it: in scx-floor.sh
# 31 us a turn beside an idle CPU, 245 where both are busy; here up to 650. Each time that CPU 1 goes offline and
# comes back, a group that has no other CPU may use PUSH_US, for the same reason more than the 2,800 us under
# the kernel's own class. Other groups get nothing.
: "${TURN_US:=700}" "${PUSH_US:=10000}"
root=/sys/fs/cgroup/random-test

# pick WORD...: one of them; the n-th call of a seed always draws the same one.
pick() {
    drawn=$((drawn + 1))
    shift $((0x$(echo "$SEED $drawn" | md5sum | cut -c 1-7) % $#))
    picked=$1
}
# draw GROUP N: prints settings for a group of N tasks, those of its child groups included. The test draws
# all settings before it starts the hogs, since it needs many processes for that, and beside 1,000 hogs each
# of them waits.
draw() {
    pick 1 2 10 100 1000 10000; weight=$picked
    pick "max 100000" "max 100000" "1000 1000000" "1000 100000" "10000 100000" "50000 20000" "200000 1000000"
    max=$picked
    pick 0 0 0 1; idle=$picked
    pick 0 1 0-1 0-1
    echo "$1 $2 $weight $idle $picked $max"
}
draw_all() {
    draw one $one
    draw both $((within + beside))
    draw both/within $within
    draw both/beside $beside
}
# effective SETTINGS: the same with the CPUs that a group can use. One inside `both` has those that it has in
# common with `both`, or else those of `both`.
effective() {
    awk '$1 == "both" { both = $5 }
        $1 ~ "/" && ($5 == "0-1" || both != "0-1") { $5 = both }
        { print }' "$1"
}
# usage GROUP FILE FILE: the group, what it has used, and the time, in us; the files are its cpu.stat and
# /proc/uptime, in the order in which they are to be read.
usage() {
    awk -v g="$1" '
        $1 == "usage_usec" { used = $2 }
        FILENAME == "/proc/uptime" { at = $1 * 1e6 }
        END { printf "%s %.0f %.0f\n", g, used, at }' "$2" "$3"
}
# limits_hold SETTINGS COMMAND...: applies the settings and runs the command; meanwhile no group uses more
# than its limit allows.
limits_hold() {
    settings=$1
    shift
    while read -r g n weight idle cpus max; do
        echo "random: $g: $n tasks on $cpus, weight $weight, cpu.idle $idle, cpu.max $max"
        # An idle group's weight cannot be written.
        echo 0 >$root/$g/cpu.idle
        echo $weight >$root/$g/cpu.weight
        echo $idle >$root/$g/cpu.idle
        echo $cpus >$root/$g/cpuset.cpus
        echo "$max" >$root/$g/cpu.max
    done <$settings
    # Meanwhile the groups spend the quota that they had not used before.
    sleep 2
    # Beside hundreds of hogs a command may wait for a second, so each group's time is its own.
    while read -r g _; do usage $g /proc/uptime $root/$g/cpu.stat; done <$settings >before
    all=$(used_us $root)
    began_us=$(now_us)
    "$@" >said 2>&1 || { cat said; fail "SEED=$SEED round $round: $*"; }
    still_loaded "SEED=$SEED round $round: $*"
    took_us=$(($(now_us) - began_us))
    all=$(($(used_us $root) - all))
    : >after
    pushes=$(awk '$2 == "hotplug" { n = $3 } END { print n + 0 }' said)
    effective $settings >used_cpus
    # Groups of tasks that have CPU 1 only.
    awk '
        { lone[$1] = $1 != "both" && $5 == "1" }
        END {
            lone["both"] = lone["both/within"] + lone["both/beside"]
            for (g in lone) print g, lone[g]
        }' used_cpus >lone
    while read -r g n _ _ _ quota period; do
        [ "$quota" = max ] && continue
        usage $g $root/$g/cpu.stat /proc/uptime >this
        set -- $(awk -v g=$g '
            FILENAME == "lone" { if ($1 == g) lone = $2; next }
            $1 == g { used = $2 - used; took = $3 - took }
            END { printf "%.0f %.0f %d", used, took, lone }' lone before this)
        used=$1
        echo "$g $used" >>after
        awk -v used=$used -v took=$2 -v q=$quota -v p=$period -v g=$g -v turns=$((n * TURN_US)) -v pushes=$(($3 * pushes * PUSH_US)) 'BEGIN {
            # One more period may begin than fits into that time, and each task gets a turn per second. Beside
            # a storm and 1,000 throttled tasks a group has used 0.5% of a CPU more; why is not known.
            most = (took / p + 1) * q * 1.02 + turns * (took / 1e6 + 1) + pushes + took / 100
            printf "random: %s used %d us of at most %d", g, used, most
            # Two CPUs have no more.
            if (most >= 2 * took) { print ": NOT tested, that is all that the CPUs have"; exit 0 }
            print ""
            exit used > most
        }' || fail "SEED=$SEED round $round: $g has left its limit"
    done <$settings
}
# enough: what limits_hold has just measured is not too little, without a storm. 5 ms are for quota that was
# used in advance.
enough() {
    awk -v took=$took_us -v all=$all '
        function cpus(list) { return list == "0-1" ? 3 : list + 1 }
        function common(a, b) { return a == b || b == 3 ? a : a == 3 ? b : 0 }
        FILENAME == "after" { used[$1] = $2; next }
        { n[$1] = $2; on[$1] = cpus($5); quota[$1] = $6; period[$1] = $7 }
        END {
            free = "max"
            # Beside these groups there are none on its CPUs, or on one of them.
            beside["one"] = "both"; beside["both"] = "one"
            beside["both/within"] = "both/beside one"; beside["both/beside"] = "both/within one"
            for (g in n) {
                if (quota[g] == free) continue
                if (g ~ "/" && quota["both"] != free) continue
                # What is in `both` wants its CPUs only if it has no limits.
                if (g == "both" && (quota["both/within"] != free || quota["both/beside"] != free)) continue
                others = split(beside[g], other, " ")
                lone = 0
                for (c = 1; c <= 2; c++) {
                    if (common(on[g], c) == 0) continue
                    if (g == "both" && !(common(on["both/within"], c) || common(on["both/beside"], c))) continue
                    taken = 0
                    for (i = 1; i <= others; i++) taken += common(on[other[i]], c) != 0
                    lone += !taken
                }
                if (!lone) continue
                due = took * quota[g] / period[g]
                if (due > took) due = took
                least = due / 2 - 5000
                if (least <= 0) continue
                printf "random: %s used %d us of at least %d\n", g, used[g], least
                if (used[g] < least) bad = 1
            }
            for (c = 1; c <= 2; c++) {
                wanted = 0
                for (g in n) {
                    if (g == "both" || quota[g] != free || common(on[g], c) == 0) continue
                    if (g ~ "/" && quota["both"] != free) continue
                    if (n[g] >= (on[g] == 3 ? 2 : 1)) wanted = 1
                }
                busy += wanted
            }
            if (busy) printf "random: all groups used %d us of at least %d\n", all, busy * took * 0.8
            exit bad || all < busy * took * 0.8
        }' after used_cpus || fail "SEED=$SEED round $round: too little"
}

echo "+cpu +cpuset" >/sys/fs/cgroup/cgroup.subtree_control
load
from_us=$(now_us)
for SEED in $(echo "$SEEDS" | tr , " "); do
    drawn=0
    for round in $(seq "$ROUNDS"); do
        [ $((($(now_us) - from_us) / 1000000)) -lt "$MOST_SECONDS" ] || finish
        mkdir $root
        echo "+cpu +cpuset" >$root/cgroup.subtree_control
        mkdir $root/one $root/both
        echo "+cpu +cpuset" >$root/both/cgroup.subtree_control
        mkdir $root/both/within $root/both/beside
        for g in one within beside; do
            pick 1 2 5 20 60 300 1000; eval $g=$picked
            pick -20 -10 0 0 10 19; eval nice_$g=$picked
        done
        draw_all >first
        draw_all >then
        pick affinity fork cgroup hotplug; storm=$picked
        hogs $root/one 0-1 $one $nice_one
        hogs $root/both/within 0-1 $within $nice_within
        hogs $root/both/beside 0-1 $beside $nice_beside
        until [ "$(cat $root/*/cgroup.procs $root/both/*/cgroup.procs | wc -l)" -ge $((one + within + beside)) ]; do
            sleep 0.1
        done
        limits_hold first sleep "$ROUND_SECONDS"
        enough
        limits_hold then storm --seconds "$ROUND_SECONDS" $storm
        clear_all
        echo "random: SEED=$SEED round $round: $storm; $((($(now_us) - from_us) / 1000000)) s since the load"
    done
done
finish
