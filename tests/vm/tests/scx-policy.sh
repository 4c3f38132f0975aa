# Policy files in the kernel, compiled on the host for a guest without clang (/policies): the
# examples and the template load; tasks land where first_fit says; a wrong CPU is counted and does
# no harm; what the verifier refuses is told with the file's line.
set -eu
. /lib/functions.sh

: "${SECONDS_EACH:=10}"
load_policy() {
    load --policy "/policies/$1.o"
    grep -q "$1.c selects the CPU" log || die "the log does not name the file: $(cat log)"
}
end() {
    kill -TERM "$loader"
    ended 0
}
monitor() {
    scx_reveille --monitor 1 --json >monitor &
    pid=$!
    sleep 3
    kill -INT "$pid"
    wait "$pid" || true
    tail -n 1 monitor
}

cpus=$(nproc)
[ "$cpus" -ge 4 ] || die "four CPUs are needed, there are $cpus"

# Two tasks that wake every millisecond, and the shell that looks at where they last ran.
load_policy first_fit
mkdir -p one two
task canary one "$SECONDS_EACH" >waits & one=$!
task canary two "$SECONDS_EACH" >waits & two=$!
: >places
while kill -0 "$one" 2>/dev/null && kill -0 "$two" 2>/dev/null; do
    for pid in $one $two; do
        awk '{ print $39 }' "/proc/$pid/stat" >>places 2>/dev/null || true
    done
    sleep 0.05
done
wait "$one" "$two"
sort places | uniq -c | awk '{ print "scx-policy: first_fit: CPU " $2 ": " $1 " samples" }'
# With the shell they are three, and the last CPU of four is hardly ever needed.
awk -v last=$((cpus - 1)) '{ n += $1 == last } END { exit !(NR > 50 && n < 0.15 * NR) }' places ||
    die "tasks are not on the lowest CPUs"
monitor >last
grep -q '"policy":"first_fit.c"' last || die "--monitor does not name the file: $(cat last)"
grep -q '"own":[1-9]' last || die "the file has chosen nothing: $(cat last)"
grep -q '"wrong_cpu":0' last || die "wrong CPUs: $(cat last)"
end

for file in power_of_two sis_short template; do
    load_policy $file
    storm --seconds 3 affinity fork
    monitor >last
    grep -q '"wakeups":[1-9]' last && grep -q '"wrong_cpu":0' last || die "$file: $(cat last)"
    end
    echo "scx-policy: $file: loaded, done"
done

load_policy nowhere
storm --seconds 3 affinity fork
monitor >last
grep -q '"wrong_cpu":[1-9]' last || die "wrong CPUs are not counted: $(cat last)"
grep -q 'nowhere.c has answered with a CPU that is not there' log || die "no word of it: $(cat log)"
end

code=0
scx_reveille --policy /policies/endless.o 2>refused || code=$?
cat refused
[ "$code" = 2 ] || die "endless ended with $code"
grep -q 'endless.c:1[34]: the verifier refuses it: [A-Za-z]' refused || die "its line is not told"
[ "$(state)" = disabled ] || die "a refused file is loaded"

code=0
scx_reveille --policy /policies/first_fit.c 2>refused || code=$?
[ "$code" = 2 ] && grep -q 'there is no clang' refused || die "without clang: $code, $(cat refused)"
echo "scx-policy: all ends well"
exit $failed
