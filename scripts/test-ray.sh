#!/usr/bin/env bash
# Builds the Python package, and runs sweeps and plans on a local Ray cluster and the notebooks.
# Packages come from the package index, into target/ray.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RAY_ENABLE_UV_RUN_RUNTIME_ENV=0
venv=$PWD/target/ray
wanted=(ray==2.60.0 polars==2.* matplotlib==3.* pytest==9.* nbmake==1.* ipykernel==7.*)
if [ "$(cat "$venv/wanted" 2>/dev/null)" != "${wanted[*]}" ]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet "${wanted[@]}"
    printf '%s\n' "${wanted[*]}" >"$venv/wanted"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
scripts/wheel.sh "$venv/bin/python" "$dir"
"$venv/bin/python" -m pip install --quiet --force-reinstall "$dir"/*.whl
REVEILLE=$venv/bin/reveille
export REVEILLE
"$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests/test_ray.py
"$venv/bin/python" -m pytest -q -p no:cacheprovider --nbmake docs/notebooks
