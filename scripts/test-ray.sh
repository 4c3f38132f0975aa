#!/usr/bin/env bash
# Builds the Python package, and runs sweeps and plans on a local Ray cluster and the notebooks.
# Packages come from the package index, into target/ray.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RAY_ENABLE_UV_RUN_RUNTIME_ENV=0
venv=$PWD/target/ray
wanted=(ray==2.60.0 polars==2.1.0 matplotlib==3.* pytest==9.* nbmake==1.* ipykernel==7.*)
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
cp -r docs "$dir"
"$venv/bin/python" -m pytest -q -p no:cacheprovider --nbmake --overwrite "$dir/docs/notebooks"
# They print what they are shown to print.
"$venv/bin/python" - docs/notebooks "$dir/docs/notebooks" <<'END'
import json, pathlib, sys

def printed(path):
    outputs = [o for cell in json.loads(path.read_text())["cells"] for o in cell.get("outputs", [])]
    return ["".join(o.get("text") or o.get("data", {}).get("text/plain", "")) for o in outputs]

shown, ran = map(pathlib.Path, sys.argv[1:])
for path in shown.glob("*.ipynb"):
    for old, new in zip(printed(path), printed(ran / path.name), strict=True):
        if old != new:
            sys.exit(f"{path}: shows\n{old}\nbut now prints\n{new}\nRun it again, and keep its outputs.")
END
