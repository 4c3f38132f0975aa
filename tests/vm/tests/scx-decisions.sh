# The same decision: wakeups recorded under scx_reveille, with the state that each was decided
# from, are decided again by the native build that the simulator uses. RECORDS for each set of
# features; pipes, storms and hogs wake and are woken meanwhile.
set -eu

: "${RECORDS:=100000}"

decide() {
    rm -f decisions
    scx_reveille "$@" --record decisions --record-limit "$RECORDS" 2>log &
    loader=$!
    while kill -0 $loader 2>/dev/null; do
        for _ in 1 2 3 4 5 6; do (timeout 2 yes | cat | cat >/dev/null) & done
        storm --seconds 2 affinity fork >/dev/null
    done
    code=0
    wait $loader || code=$?
    [ $code = 0 ] || {
        cat log
        exit 1
    }
    echo "decisions of $*:"
    scx_reveille replay decisions
    scx_reveille replay --json decisions >"$OUT/decisions.$(echo "$*" | tr -c 'A-Za-z0-9.\n' _).json"
}

decide --base v6.4
decide --base v6.2 --with +SIS_SHORT
decide --base v6.4 --with +SWQUEUE
decide --base v5.13
decide --base v5.13 --with +SIS_AGE
decide --base v4.5
decide --base v4.5 --with +SIS_FIRST
decide --base v6.4 --with -WA_IDLE,-RECENT_USED_CPU
