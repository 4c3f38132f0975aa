#!/usr/bin/env bash
# Instructions per activation after warm-up, counted by callgrind: unlike times they do not
# depend on what else the machine does. Takes some two minutes on two CPUs.
#
#   count-instructions.sh BENCH              prints them; BENCH is the benchmark `activations`
#   count-instructions.sh BENCH --write      ... and writes them to crates/sim/benches/instructions.txt
#   count-instructions.sh BENCH --check      fails if one is more than 3% above what stands there
#   count-instructions.sh BENCH --table      ... and prints a table of them by mechanism
#
# Other compilers make other instructions, so figures of others are shown and not judged.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bench=$1
mode=${2:-}
committed=crates/sim/benches/instructions.txt
most_percent=3

compilers="$(rustc --version), $(cc -dumpfullversion), $(uname -m)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A row of CASES in crates/sim/benches/activations.rs, or 10 for the main case; its sockets;
# milliseconds of warm-up, and measured.
rows='10 2 60 2
4 2 40 8
7 2 40 4
9 2 160 4
10 16 60 1'

export bench dir
# shellcheck disable=SC2016
xargs -P "$(nproc)" -I ROW sh -c '
    row="ROW"
    file="$dir/$(printf %s "$row" | tr " " -)"
    # shellcheck disable=SC2086
    valgrind --tool=callgrind --zero-before="reveille_sim::engine::*forget" \
        --callgrind-out-file="$file.profile" "$bench" $row >"$file.ran" 2>"$file.log" ||
        { cat "$file.log" >&2; exit 1; }' <<<"$rows"

{
    printf '# Instructions per activation (make count), as compiled by\n# %s\n' "$compilers"
    while read -r row; do
        file=$dir/${row// /-}
        read -r activations name <"$file.ran"
        instructions=$(sed -n 's/^totals: //p' "$file.profile")
        printf '%7d %s\n' $((instructions / activations)) "$name"
    done <<<"$rows"
} >"$dir/counted"
cat "$dir/counted"

case $mode in
--write) cp "$dir/counted" "$committed" ;;
--table)
    while read -r row; do
        file=$dir/${row// /-}
        read -r activations name <"$file.ran"
        printf '%s=%s,%s\0' "$name" "$file.profile" "$activations"
    done <<<"$rows" | xargs -0 scripts/instructions-by-mechanism.py
    ;;
--check)
    if [ "$(sed -n 2p "$committed")" != "# $compilers" ]; then
        printf 'SKIPPED: %s is of other compilers:\n%s\n' "$committed" "$(sed -n 2p "$committed")"
        exit 0
    fi
    awk -v most="$most_percent" '
        /^#/ { next }
        { count = $1; $1 = "" }
        FNR == NR { known[$0] = count; next }
        !($0 in known) { print "no committed figure of" $0; bad = 1; next }
        count > known[$0] * (1 + most / 100) {
            printf "more than %d%% above %d:%s\n", most, known[$0], $0; bad = 1
        }
        END {
            if (bad) print "faster code, or: make count COUNT=--write, and say why in the commit"
            exit bad
        }' "$committed" "$dir/counted" >&2
    ;;
esac
