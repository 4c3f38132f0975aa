#!/usr/bin/env bash
# Compiles the workspace with the oldest Rust that Cargo.toml promises (rust-version).
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! command -v rustup >/dev/null 2>&1 ||
    ! rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null 2>&1; then
    printf '\n*** SKIPPED: Rust %s, the oldest supported: rustup cannot install it here\n\n' "$oldest" >&2
    exit 0
fi
CARGO_PROFILE_DEV_DEBUG=0 cargo +"$oldest" check --workspace --exclude scx_reveille --locked \
    --target-dir target/msrv
