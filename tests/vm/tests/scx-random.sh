# Settings drawn at random do not get scx_reveille ejected, and limits hold under them: weights, nice
# values, cpu.max down to 1 ms per 1 s, cpu.idle, sets of CPUs and up to 1,000 tasks in three groups at a
# time; the first round of seed 12 has 1,000 tasks in 1 ms per 1 s. Under --icount. An hour of guest time
# is ROUNDS=500. The watchdog has 4 s, so that a task may wait 1 s; with the default, 30 s, the turns that
# it then gets are 7.5 times rarer.
set -eu
. /lib/functions.sh

: "${SEED:=12}" "${ROUNDS:=2}" "${ROUND_SECONDS:=5}"
# What a turn costs a group at most, us: 20, and the way out.
TURN_US=25
root=/sys/fs/cgroup/random-test

# pick WORD...: one of them; the n-th call of a seed always draws the same number.
drawn=0
pick() {
    drawn=$((drawn + 1))
    shift "$(awk -v seed="$SEED$drawn" -v n=$# 'BEGIN { srand(seed); rand(); print int(rand() * n) }')"
    picked=$1
}

echo "random: SEED=$SEED ROUNDS=$ROUNDS"
echo "+cpu +cpuset" >/sys/fs/cgroup/cgroup.subtree_control
WATCHDOG_MS=4000 load
for round in $(seq "$ROUNDS"); do
    mkdir $root
    echo "+cpu +cpuset" >$root/cgroup.subtree_control
    : >due
    for g in g1 g2 g3; do
        mkdir $root/$g
        pick 1 2 10 100 1000 10000; weight=$picked
        pick max max "1000 1000000" "1000 100000" "10000 100000" "50000 20000" "200000 1000000"; max=$picked
        pick 0 0 0 1; idle=$picked
        pick 1 2 5 20 60 300 1000; n=$picked
        pick -20 -10 0 0 10 19; nice=$picked
        pick 0 1 0-1 0-1; cpus=$picked
        echo "random: round $round: $n hogs of nice $nice on $cpus, weight $weight, cpu.max $max, cpu.idle $idle"
        echo "$weight" >$root/$g/cpu.weight
        [ $idle = 0 ] || echo 1 >$root/$g/cpu.idle
        echo $cpus >$root/$g/cpuset.cpus
        echo "$max" >$root/$g/cpu.max
        hogs $root/$g $cpus $n $nice
        echo "$g $n $max" >>due
    done
    # All of them are there, and what they had saved is spent.
    sleep 2
    while read -r g _; do echo "$g $(used_us $root/$g)"; done <due >before
    began_us=$(now_us)
    sleep "$ROUND_SECONDS"
    still_loaded "SEED=$SEED round $round"
    took_us=$(($(now_us) - began_us))
    while read -r g n quota period; do
        [ "$quota" = max ] && continue
        used=$(($(used_us $root/$g) - $(awk -v g=$g '$1 == g { print $2 }' before)))
        awk -v used=$used -v took=$took_us -v q=$quota -v p=$period -v n=$n -v turn=$TURN_US -v g=$g 'BEGIN {
            # A period more may have begun, and each task gets a turn per second.
            most = (took / p + 1) * q * 1.02 + n * turn * (took / 1e6 + 1)
            printf "random: %s used %d us of at most %d\n", g, used, most
            exit used > most
        }' || fail "SEED=$SEED round $round: $g has left its limit"
    done <due
    clear_all
done
finish
