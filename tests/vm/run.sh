#!/usr/bin/env bash
# The tests in a virtual machine: boots a kernel with sched_ext, and runs the scripts of
# tests/vm/tests in it. Logs and what the guest wrote: target/vm/out.
#
#   run.sh [--if-possible] REVEILLE SCX_REVEILLE
#
# SCX_REVEILLE is built first, and its tests that need no such kernel are run.
# In the environment: RECORDS=N, decisions that are recorded for each set of features;
# ONLY="NAME ...", other tests are left out; GUEST="NAME=VALUE ...", variables of the
# guest's scripts; TIMEOUT=S, for a boot, in seconds; KERNEL=SERIES, as kernel.py takes it.
# Ends with 1 if a test fails or the machine cannot be had; with --if-possible a machine that
# cannot be had is reported, and is no failure.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if_possible=no
if [ "${1:-}" = --if-possible ]; then
    if_possible=yes
    shift
fi
reveille=${1:?the path of the reveille command is missing}
scx_reveille=${2:?the path of scx_reveille is missing}
out=target/vm/out

cannot() {
    if [ "$if_possible" = yes ]; then
        printf '\n*** SKIPPED: tests in a virtual machine: %s\n\n' "$*" >&2
        exit 0
    fi
    printf '\nFAILED: tests in a virtual machine: %s\n' "$*" >&2
    exit 1
}

# boot_once NAME LOG OPTION...: one boot. A guest that runs into a breakpoint of the kernel's own
# was stopped by the emulator (README.md) and says nothing about the tests: it is booted again,
# twice at most.
boot_once() {
    local name=$1 log=$2
    shift 2
    for again in 2 1 0; do
        code=0
        tests/vm/boot.py "$@" --out "$out/$name" 2>&1 | tee "$log" || code=$?
        grep -q 'Oops: int3' "$log" || break
        printf '\n*** vm: %s: the emulator has stopped the guest (Oops: int3), %d more tries\n' \
            "$name" "$again" >&2
    done
}

# boot NAME OPTION... -- TEST...: boots and runs these tests of tests/vm/tests. Sixteen emulated
# CPUs stall on a busy host, so tests that fail without a complaint of the kernel's get a second
# boot. Failing twice is a failure, unless boot.py finds the second INCONCLUSIVE. To
# NAME.result: how many passed and failed, NAME, and what passed in the second boot only.
boot() {
    local name=$1 options=() tests=() scripts=() code good bad=0 lost second='' log="$out/$1.log"
    shift
    # What the kernel does not know of its command line becomes the environment of init.
    options=(--append "RECORDS=${RECORDS:-10000} ${GUEST:-}")
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    [ -z "${KERNEL:-}" ] || options+=(--kernel "$KERNEL")
    [ -z "${TIMEOUT:-}" ] || options+=(--timeout "$TIMEOUT")
    for test in "$@"; do
        [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $test "* ]] || continue
        tests+=("$test")
        scripts+=(--script "tests/vm/tests/$test.sh")
    done
    [ ${#tests[@]} -gt 0 ] || return 0
    # What does not come to its end has failed.
    echo "0 1 $name" >"$out/$name.result"
    printf '\nvm: %s: %s\n' "$name" "${tests[*]}"
    boot_once "$name" "$log" "${options[@]}" "${scripts[@]}"
    good=$(grep -c '^boot.py: passed' "$log" || true)
    if [ "$code" -ne 0 ] && ! grep -q '^boot.py: FAILED: the kernel says' "$log"; then
        # A boot without a result has failed as a whole.
        lost=$(sed -nE 's/^boot.py: (FAILED|INCONCLUSIVE): ([a-z-]*) \(exit code .*/\2/p' "$log" | tr '\n' ' ')
        [ -n "$lost" ] || { lost="${tests[*]} "; good=0; }
        printf '\n*** vm: %s: no success: %s; a second boot\n' "$name" "$lost" >&2
        log="$out/$name.again.log"
        scripts=()
        for test in $lost; do scripts+=(--script "tests/vm/tests/$test.sh"); done
        boot_once "$name.again" "$log" "${options[@]}" "${scripts[@]}"
        good=$((good + $(grep -c '^boot.py: passed' "$log" || true)))
        [ "$code" -ne 0 ] || second=" $lost"
    fi
    sed -n 's/^boot.py: INCONCLUSIVE: /    /p' "$log" >"$out/$name.inconclusive"
    if [ "$code" -ne 0 ] && [ "$code" -ne 4 ]; then
        bad=$(grep -c '^boot.py: FAILED' "$log" || true)
        bad=$((bad ? bad : 1))
    fi
    echo "$good $bad $name$second" >"$out/$name.result"
}

scripts/need.sh python3 cc strip qemu busybox bpftool zstd bpf-clang libelf ||
    cannot "the tools named above are missing"
python3 tests/vm/test_host.py
make --no-print-directory scx test-scx

rm -rf "$out"
mkdir -p "$out"
tests/vm/kernel.py ${KERNEL:+--kernel "$KERNEL"} >/dev/null 2>"$out/kernel.log" || cannot "$(cat "$out/kernel.log")"
cc -O2 -static -std=gnu11 -Wall -Wextra -Werror tests/vm/storm/*.c -o target/vm/storm ||
    cannot "tests/vm/storm does not compile"

cc -O2 -static -std=gnu11 -Wall -Wextra -Werror tests/vm/task/task.c -o target/vm/task ||
    cannot "tests/vm/task does not compile"

# The guest has no clang.
policies=(--file docs/examples/policies/first_fit.c:/policies/first_fit.c)
mkdir -p target/vm/policies
for file in docs/examples/policies/*.c crates/policy/csrc/template.c tests/vm/policy/*.c; do
    name=$(basename "$file" .c).o
    "$scx_reveille" compile "$file" -o "target/vm/policies/$name" >/dev/null
    policies+=(--file "target/vm/policies/$name:/policies/$name")
done

programs=(--program "$reveille" --program "$scx_reveille" --program target/vm/storm
    --program target/vm/task)
few=(--smp sockets=1,cores=2,threads=2 --memory 1G)
some=(--smp sockets=2,cores=2,threads=2)
# A boot takes 10 s of CPU time, so tests share one where they can.
boot whole --timeout 800 "${programs[@]}" -- kernel machine storm scx-load
# Where one instruction is one nanosecond the host's load cannot matter.
four=(--icount "${few[@]}" --timeout 3000)
tiny=("${four[@]}" --smp sockets=1,cores=2,threads=1)
# The guest's CPUs share one of the host's, so there are two of these at a time.
set -m
{
    boot limits "${four[@]}" "${programs[@]}" -- quota scx-fair scx-quota scx-limits
    boot floor "${tiny[@]}" "${programs[@]}" -- scx-floor scx-random
    boot balance "${four[@]}" --smp sockets=2,cores=2,threads=1 "${programs[@]}" -- scx-balance
} >"$out/limits.said" 2>&1 &
limits=$!
trap 'kill -- -$limits 2>/dev/null || true' EXIT
set +m
boot waits "${tiny[@]}" "${programs[@]}" -- scx-locks scx-wakeups scx-storms
wait $limits || true
trap - EXIT
cat "$out/limits.said"
# The table of modes in the README takes its time: by name only.
[[ " ${ONLY:-} " != *" scx-modes "* ]] || boot modes "${tiny[@]}" "${programs[@]}" -- scx-modes
boot use --timeout 1200 --allow 'disabled by sysrq' "${few[@]}" "${programs[@]}" "${policies[@]}" -- \
    scx-safe scx-policy scx-compare
boot decisions --timeout 900 "${some[@]}" "${programs[@]}" -- scx-decisions

passed=0 failed=0 failures='' second=''
shopt -s nullglob
while read -r good bad name again; do
    passed=$((passed + good)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] || failures+=" $name"
    [ -z "$again" ] || second+=" $again"
done < <(cat /dev/null "$out"/*.result)
inconclusive=$(cat /dev/null "$out"/*.inconclusive)
[ -z "$second" ] || printf '\nvm: passed in a second boot only:%s\n' "$second"
[ -z "$inconclusive" ] || printf '\n*** vm: INCONCLUSIVE, the host was busy:\n%s\n' "$inconclusive" >&2
for name in $failures; do
    printf '\nvm: %s failed:\n' "$name"
    grep -hE "FAILED|INCONCLUSIVE" "$out/$name".{,again.}log 2>/dev/null | cut -c 1-200 | head -n 40 || true
done
[ -z "$failures" ] || printf '\nvm: failed:%s; logs in %s\n' "$failures" "$out"
printf '\nvm: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
