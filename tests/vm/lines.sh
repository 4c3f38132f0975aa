#!/usr/bin/env bash
# How many cache lines a message moves between two CPUs, counted in an emulator (tests/vm/lines):
# lines.sh [--functions] [KERNEL]. Lines of the wakeup are those that every kind of channel moves in the
# same functions; the rest are the channel's. Beside a second pair that does the same, it counts lines that come
# from there: by instructions that do so for three of ten messages or more, as ticks and timers move some, too.
# Prints means per message; --functions lists where. Run it on a quiet host: a busy one adds some, and takes
# some away where the other end does not sleep yet.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROUNDS=400
functions=
[ "${1:-}" = --functions ] && functions=$1 && shift
kernel=${1:-}

fail() {
    printf 'lines: FAILED: %s\n' "$*" >&2
    exit 1
}
[[ $# -le 1 && $kernel != -* ]] || fail "lines.sh [--functions] [KERNEL], not $*"
scripts/need.sh python3 cc strip qemu busybox bpftool zstd || fail "the tools named above are missing"
work=target/vm/lines
mkdir -p $work
flags=(-O2 -std=gnu11 -Wall -Wextra -Werror)
cc "${flags[@]}" -shared -fPIC tests/vm/lines/count.c -o $work/count.so || fail "count.c does not compile"
cc "${flags[@]}" -static tests/vm/lines/exchange.c -o $work/exchange || fail "exchange.c does not compile"
rm -rf $work/out
tests/vm/boot.py ${kernel:+--kernel "$kernel"} --smp sockets=1,cores=4,threads=1 --memory 1G --timeout 900 \
    --plugin "$PWD/$work/count.so,out=$PWD/$work/counted" --program $work/exchange --append "ROUNDS=$ROUNDS" \
    --script tests/vm/tests/lines.sh --out $work/out >$work/log 2>&1 || fail "see $work/log"

python3 - $work $ROUNDS "$functions" <<'TABLE'
import bisect, collections, sys

KINDS = ["pipe", "unix", "udp", "tcp"]
work, rounds, functions = sys.argv[1], int(sys.argv[2]), sys.argv[3]

symbols = sorted((int(address, 16), name) for address, _, name, *_ in
                 map(str.split, open(f"{work}/out/kallsyms", encoding="utf-8")))
starts = [address for address, _ in symbols]


def function(address):
    if address < 1 << 63:
        return "(user)"
    return symbols[bisect.bisect_right(starts, address) - 1][1]


windows, from_further = [], []
for line in open(f"{work}/counted", encoding="utf-8"):
    if line == "window\n":
        windows.append(collections.Counter())
        from_further.append(collections.Counter())
        continue
    address, *moved = line.split()
    # Two messages a round.
    near, far = (int(n) / rounds / 2 for n in moved)
    windows[-1][function(int(address, 16))] += near
    if far >= 0.3:
        from_further[-1][function(int(address, 16))] += far
K = len(KINDS)
if len(windows) != 3 * K + 1:
    sys.exit(f"lines: FAILED: {len(windows)} windows were counted, not {3 * K + 1}")
apart, together, direct, others = windows[:K], windows[K:2 * K], windows[-1], from_further[2 * K:3 * K]
wakeup = sum(min(far[name] for far in apart) for name in apart[0])
print("lines per message       all  of the wakeup  of the channel  on one CPU  of a second pair")
for kind, far, near, other in zip(KINDS, apart, together, others):
    if not other.pop("(user)", 0):
        sys.exit(f"lines: FAILED: {kind}: the line that both pairs write was not seen to move")
    if near.total() > 2:
        sys.exit(f"lines: FAILED: {kind} moves {near.total():.1f} lines on one CPU")
    print(f"{kind:16}{far.total():11.1f}{wakeup:15.1f}{far.total() - wakeup:16.1f}{near.total():12.1f}"
          f"{other.total():18.1f}")
    if functions:
        for name, n in far.most_common() + other.most_common():
            if n >= 0.05:
                print(f"    {name:40}{n:6.2f}")
more = direct.total() - apart[0].total()
print(f"A waker that enqueues by itself instead of by wake list: {more:.1f} more, there and back.")
TABLE
