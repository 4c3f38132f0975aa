#!/usr/bin/env bash
# Licences, duplicate versions, sources and advisories of all dependencies, by deny.toml. Builds
# cargo-deny into target/tools (three minutes of CPU time, once) unless it is installed.
set -eu
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
if cargo deny fetch db >/dev/null 2>&1; then
    check advisories
else
    printf '\n*** SKIPPED: advisories: the RustSec database cannot be fetched from github.com\n\n' >&2
fi
