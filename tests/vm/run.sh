#!/usr/bin/env bash
# The tests in a virtual machine: boots a kernel with sched_ext, and runs the scripts of
# tests/vm/tests in it. Logs and what the guest wrote: target/vm/out.
#
#   run.sh [--if-possible] REVEILLE SCX_REVEILLE
#
# SCX_REVEILLE is built first, and its tests that need no such kernel are run.
# RECORDS=N in the environment: decisions that are recorded for each set of features.
# Ends with 1 if a test fails or the machine cannot be had; with --if-possible a machine that
# cannot be had is said, loudly, and is no failure.
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
passed=0
failed=0

cannot() {
    if [ "$if_possible" = yes ]; then
        printf '\n*** SKIPPED: tests in a virtual machine: %s\n\n' "$*" >&2
        exit 0
    fi
    printf '\nFAILED: tests in a virtual machine: %s\n' "$*" >&2
    exit 1
}

# boot NAME OPTION... -- TEST...: one boot that runs these tests of tests/vm/tests.
# A guest that runs into a breakpoint of the kernel's own was stopped by the emulator (README.md)
# and says nothing about the tests: it is booted again, twice at most.
boot() {
    local name=$1 arguments=() code good bad
    shift
    while [ "$1" != -- ]; do
        arguments+=("$1")
        shift
    done
    shift
    for test in "$@"; do arguments+=(--script "tests/vm/tests/$test.sh"); done
    for again in 2 1 0; do
        printf '\nvm: %s: %s\n' "$name" "$*"
        code=0
        tests/vm/boot.py "${arguments[@]}" --out "$out/$name" 2>&1 | tee "$out/$name.log" || code=$?
        grep -q 'Oops: int3' "$out/$name.log" || break
        printf '\n*** vm: %s: the emulator has stopped the guest (Oops: int3), %d more tries\n' \
            "$name" "$again" >&2
    done
    good=$(grep -c '^boot.py: passed' "$out/$name.log" || true)
    bad=$(grep -c '^boot.py: FAILED' "$out/$name.log" || true)
    if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
}

scripts/need.sh python3 cc strip qemu busybox bpftool zstd bpf-clang libelf ||
    cannot "the tools named above are missing"
python3 tests/vm/test_host.py
make --no-print-directory scx test-scx

rm -rf "$out"
mkdir -p "$out"
tests/vm/kernel.py >/dev/null 2>"$out/kernel.log" || cannot "$(cat "$out/kernel.log")"
cc -O2 -static -std=gnu11 -Wall -Wextra -Werror tests/vm/storm/*.c -o target/vm/storm ||
    cannot "tests/vm/storm does not compile"

programs=(--program "$reveille" --program "$scx_reveille" --program target/vm/storm)
few=(--smp sockets=1,cores=2,threads=2 --memory 1G)
some=(--smp sockets=2,cores=2,threads=2)
boot kernel --timeout 400 "${programs[@]}" -- kernel machine quota storm
boot scx --timeout 400 "${programs[@]}" -- scx-load
boot scx-shares --timeout 400 "${few[@]}" "${programs[@]}" -- scx-fair scx-quota
# What the kernel does not know of its command line becomes the environment of init.
boot scx-decisions --timeout "${DECISIONS_TIMEOUT:-900}" --append "RECORDS=${RECORDS:-10000}" \
    "${some[@]}" "${programs[@]}" -- scx-decisions
boot scx-compare --timeout 400 "${few[@]}" "${programs[@]}" -- scx-compare

printf '\nvm: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
