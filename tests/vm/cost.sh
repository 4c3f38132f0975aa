#!/usr/bin/env bash
# What a wakeup costs in instructions: scx_reveille by its sets of features, and, if asked,
# schedulers of others beside it, in an emulated machine that counts instructions. Prints a
# table; with --json FILE writes the figures as well. Logs: target/vm/out/cost-N.
#
#   cost.sh [--peers] [--only NAME,...] [--before FILE] [--group PATH] [--boots N] [--json FILE]
#           SCX_REVEILLE
#
# --before FILE is another build of scx_reveille, measured in the same boot: its rows end in
# `.before`. --group a/b: the pairs are in a task group two levels down, else in the root.
# --peers builds those of PEERS from the crate registry, once, into target/vm/peers; nothing
# of theirs becomes part of this project. --boots N measures all of it N times [2].
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

PEERS=(scx_bpfland@1.1.4 scx_lavd@1.1.4)
VARIANTS=(
    "v7.2 --base v7.2"
    "v6.4 --base v6.4"
    "v6.4+SWQUEUE --base v6.4 --with +SWQUEUE"
    "v6.2+SIS_SHORT --base v6.2 --with +SIS_SHORT"
    "v5.13 --base v5.13"
    "v5.13+SIS_AGE --base v5.13 --with +SIS_AGE"
    "v4.5 --base v4.5"
    "v4.5+SIS_FIRST --base v4.5 --with +SIS_FIRST"
)
# Two caches, cores with two threads each: the smallest machine that has all that a search
# for an idle CPU can come across. More CPUs are much slower, and count less exactly.
SMP=sockets=2,cores=2,threads=2
# Regimes: pairs of tasks of which one runs and one sleeps, on 8 CPUs.
REGIMES="idle=2 saturated=16"
WINDOW_MS=400

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

peers=no only='' before='' group='' boots=2 json=''
while [ $# -gt 1 ]; do
    case $1 in
        --peers) peers=yes ;;
        --only | --before | --group | --boots | --json)
            [ $# -gt 2 ] || usage
            case $1 in
                --only) only=$2 ;; --before) before=$2 ;; --group) group=$2 ;;
                --boots) boots=$2 ;; --json) json=$2 ;;
            esac
            shift
            ;;
        *) usage ;;
    esac
    shift
done
[ $# -eq 1 ] && [ -x "$1" ] && [[ $boots =~ ^[1-9]$ ]] || usage
reveille=$1

fail() {
    printf 'cost: FAILED: %s\n' "$*" >&2
    exit 1
}
wanted() { [ -z "$only" ] || [[ ,$only, == *,"$1",* ]]; }

scripts/need.sh python3 cc strip qemu busybox bpftool zstd bpf-clang || fail "the tools named above are missing"
mkdir -p target/vm/cost
work=target/vm/cost
cc -O2 -static -std=gnu11 -Wall -Wextra -Werror tests/vm/cost/wakeups.c -o $work/wakeups ||
    fail "tests/vm/cost/wakeups.c does not compile"
clang=$(compgen -c | grep -E '^clang-(19|2[0-2])$' | sort -V | head -n 1 || true)
clang=${SCX_CLANG:-$clang}
"$clang" -target bpf -mcpu=v3 -g -O2 -Wall -Werror -c tests/vm/cost/calibration.bpf.c \
    -o $work/calibration.bpf.o || fail "tests/vm/cost/calibration.bpf.c does not compile"

# NAME COMMAND, a line for each scheduler.
echo "calibration /etc/calibration.bpf.o" >$work/list
for name in ${only//,/ }; do
    [[ " ${VARIANTS[*]%% *} ${PEERS[*]%@*} " == *" $name "* ]] ||
        fail "--only $name: there are ${VARIANTS[*]%% *} ${PEERS[*]%@*}"
done
programs=(--program $work/wakeups --program "$(PATH=$PATH:/usr/sbin:/sbin command -v bpftool)"
    --program "$reveille:/bin/scx_reveille")
[ -z "$before" ] || programs+=(--program "$before:/bin/scx_reveille.before")
for variant in "${VARIANTS[@]}"; do
    read -r name options <<<"$variant"
    wanted "$name" || continue
    [ -z "$before" ] || echo "$name.before scx_reveille.before $options" >>$work/list
    echo "$name scx_reveille $options" >>$work/list
done
for peer in "${PEERS[@]}"; do
    name=${peer%@*}
    [ $peers = yes ] && wanted "$name" || continue
    if [ "$(cat "target/vm/peers/$name.version" 2>/dev/null)" != "$peer" ]; then
        scripts/need.sh cargo cc bpf-clang libelf || fail "$peer cannot be built"
        printf 'cost: building %s from the crate registry, into target/vm/peers\n' "$peer" >&2
        CARGO_TARGET_DIR=target/vm/peers/build BPF_CLANG=$clang \
            cargo install --quiet --locked --force --root target/vm/peers "$peer" ||
            fail "$peer does not build"
        echo "$peer" >"target/vm/peers/$name.version"
    fi
    programs+=(--program "target/vm/peers/bin/$name")
    echo "$name $name" >>$work/list
done
printf 'WINDOW_MS=%s\nREGIMES="%s"\nGROUP="%s"\n' "$WINDOW_MS" "$REGIMES" "$group" >$work/conf

results=()
for boot in $(seq "$boots"); do
    out=target/vm/out/cost-$boot
    rm -rf "$out"
    mkdir -p "$out"
    printf 'cost: boot %s of %s\n' "$boot" "$boots" >&2
    # Most of the time is the verifier's, at work on the largest of them.
    tests/vm/boot.py --icount --smp $SMP --memory 1G --timeout 1800 \
        --script tests/vm/tests/cost.sh --out "$out" "${programs[@]}" \
        --file $work/list:/etc/cost --file $work/conf:/etc/cost.conf \
        --file $work/calibration.bpf.o:/etc/calibration.bpf.o 2>&1 | tee "$out.log" >&2 ||
        fail "boot $boot: $out.log"
    results+=("$out")
done
tests/vm/cost_table.py ${json:+--json "$json"} --peers "${PEERS[*]}" "${results[@]}"
