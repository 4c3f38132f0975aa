#!/usr/bin/env bash
# Instructions per activation after warm-up, counted by callgrind: unlike times they do not
# depend on what else the machine does. count-instructions.sh BENCH, the binary of the
# benchmark `activations`. Takes a few minutes.
set -eu

bench=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

printf '%-40s %s\n' '' 'instructions per activation'
# Rows of CASES in crates/sim/benches/activations.rs, and milliseconds.
for row in '10 2' '4 8' '7 4' '9 4'; do
    # shellcheck disable=SC2086
    valgrind --tool=callgrind --zero-before='reveille_sim::engine::*forget' \
        --callgrind-out-file="$dir/profile" "$bench" $row >"$dir/ran" 2>"$dir/log" ||
        { cat "$dir/log" >&2; exit 1; }
    read -r activations name <"$dir/ran"
    instructions=$(sed -n 's/^totals: //p' "$dir/profile")
    printf '%-40s %d\n' "$name" $((instructions / activations))
done
