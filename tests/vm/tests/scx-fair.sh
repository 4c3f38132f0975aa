# Groups share a CPU within 1% whatever their tasks are, by weights of 100 and of 100:200:300, and within a group;
# tasks of nice 0 and 5 by the kernel's weights 1024:335; a task whose nice value changes all the time
# gets no more. A weight that is raised takes effect within 1 s. Under --icount.
set -eu
. /lib/functions.sh

SECONDS_EACH=6
: "${TOLERANCE_PCT:=1}"
root=/sys/fs/cgroup/fair-test

[ "${CLASS:-}" = kernel ] || load

# share NAME:WEIGHT...: groups below $root, measured against these weights.
share() {
    sleep 2
    before=$(for pair in "$@"; do used_us "$root/${pair%:*}"; done | tr '\n' ' ')
    sleep "$SECONDS_EACH"
    after=$(for pair in "$@"; do used_us "$root/${pair%:*}"; done | tr '\n' ' ')
    echo "$*" | awk -v before="$before" -v after="$after" -v tolerance="$TOLERANCE_PCT" '{
        split(before, B, " "); split(after, A, " ")
        for (i = 1; i <= NF; i++) { split($i, P, ":"); weights += P[2]; used += A[i] - B[i] }
        for (i = 1; i <= NF; i++) {
            split($i, P, ":")
            got = (A[i] - B[i]) / used; due = P[2] / weights
            printf "fair: %s: %.4f of the CPU, %.4f are due\n", P[1], got, due
            if (got < due * (1 - tolerance / 100) || got > due * (1 + tolerance / 100)) bad = 1
        }
        exit bad
    }' || fail "$*: not within $TOLERANCE_PCT%"
}
# Groups count although all weigh the same: neither many tasks nor their nice values get a group more.
tree many one
hogs $root/many 1 3
hogs $root/many 1 1 -20
hogs $root/one 1 1
share many:100 one:100
clear_all

# So do those whose only task weighs little from now on: at most one of them runs when it is changed.
tree a b c
for group in a b c; do hogs $root/$group 1 1; done
sleep 1
renice 19 $(cat $root/a/cgroup.procs $root/b/cgroup.procs) >/dev/null
share a:100 b:100 c:100
clear_all

tree w100 w200 w300
for weight in 100 200 300; do
    echo $weight >$root/w$weight/cpu.weight
    hogs $root/w$weight 1 1
done
share w100:100 w200:200 w300:300
clear_all

# A group's tasks share what the group gets, however many they are.
tree many one
echo 200 >$root/one/cpu.weight
hogs $root/many 1 3
hogs $root/one 1 1
share many:100 one:200
clear_all

# A turn goes on when its task is changed: no new one, which would be before all that wait.
tree light heavy
echo 1000 >$root/heavy/cpu.weight
taskset -c 1 task changes $root/light &
hogs $root/heavy 1 3
share light:100 heavy:1000
clear_all

# A group that waited for long by its weight gets its new part soon: half is due.
extreme_weights
sleep 2
echo 10000 >$root/light/cpu.weight
sleep 1
part=$(part_of $root/light $root/heavy 2)
echo "fair: 1 to 3 s after its weight was raised from 1 to 10000: $part of the CPU, 0.5 are due"
between 0.4 "$part" 0.6 || fail "a weight that is raised takes effect late"
clear_all

# Without cpu among the controllers below, these groups have no weight: tasks have.
mkdir -p $root/n0 $root/n5
hogs $root/n0 1 1
hogs $root/n5 1 1 5
share n0:1024 n5:335
clear_all
[ "${CLASS:-}" != kernel ] || exit 0
finish
