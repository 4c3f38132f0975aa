#!/usr/bin/env bash
# Builds the wheel with the `reveille` command in it: wheel.sh [PYTHON [DIRECTORY]]. The wheel goes
# to target/wheels unless a directory is given; maturin goes to an environment under target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
python=${1:-python3} out=$(realpath -m "${2:-$CARGO_TARGET_DIR/wheels}")

tools=$CARGO_TARGET_DIR/maturin
[ -x "$tools/bin/maturin" ] ||
    { "$python" -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check maturin; }
cargo build --release --locked --bin reveille
# maturin takes this directory into the wheel, and pip installs it beside the interpreter.
install -D -s -m 755 "$CARGO_TARGET_DIR/release/reveille" python/reveille._reveille.data/scripts/reveille
cd python
"$tools/bin/maturin" build --out "$out" --strip --interpreter "$python"
