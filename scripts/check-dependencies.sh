#!/usr/bin/env bash
# Licences, duplicate versions, sources, advisories and features of all dependencies, the first four by
# deny.toml. Builds cargo-deny into target/tools (three minutes of CPU time, once) unless it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PWD/target/tools/bin:$PATH

if ! cargo deny --version >/dev/null 2>&1; then
    echo "dependencies: building cargo-deny into target/tools"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root target/tools \
        --target-dir target/tools/build cargo-deny@0.20.2
    rm -rf target/tools/build
fi
check() { cargo deny --workspace --all-features --locked check --hide-inclusion-graph "$@"; }
check licenses bans sources
# Where features agree, the Python package takes what was compiled for the command.
features() {
    cargo tree --locked -e normal,build --prefix none -f '{p} [{f}]' -p "$1" | sed 's/ (\*)$//' | sort -u
}
command=$(features reveille-cli)
package=$(features reveille-python)
differing=$(printf '%s\n' "$command" "$package" | sort | uniq -u |
    awk 'seen[$1 $2]++ { print "  " $1, $2 }')
if [ -n "$differing" ]; then
    printf 'dependencies: crates/cli and crates/python have other features of\n%s\nso that they are compiled twice: ask for the same in both\n' "$differing" >&2
    exit 1
fi
if cargo deny fetch db >/dev/null 2>&1; then
    check advisories
else
    printf '\n*** SKIPPED: advisories: the RustSec database cannot be fetched from github.com\n\n' >&2
fi
