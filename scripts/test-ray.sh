#!/usr/bin/env bash
# Runs sweeps and plans on a local Ray cluster, and the notebooks: test-ray.sh [REVEILLE].
# Their packages are installed into target/ray, from the package index.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

REVEILLE=$(realpath "${1:-target/release/reveille}")
export REVEILLE PYTHONPATH=$PWD/python/src RAY_ENABLE_UV_RUN_RUNTIME_ENV=0
venv=target/ray
wanted=(ray==2.60.0 polars==2.* matplotlib==3.* pytest==9.* nbmake==1.* ipykernel==7.*)
if [ "$(cat "$venv/wanted" 2>/dev/null)" != "${wanted[*]}" ]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet "${wanted[@]}"
    printf '%s\n' "${wanted[*]}" >"$venv/wanted"
fi
"$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests/test_ray.py
"$venv/bin/python" -m pytest -q -p no:cacheprovider --nbmake docs/notebooks
