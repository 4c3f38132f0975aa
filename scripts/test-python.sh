#!/usr/bin/env bash
# Builds the Python package and tests it in fresh environments, one for each Python from 3.10 on
# that is here: test-python.sh. The newest also has the libraries that take its tables, and mypy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pythons=()
for minor in 10 11 12 13 14; do
    for python in "python3.$minor" ~/.pyenv/versions/3."$minor".*/bin/python3; do
        if "$python" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, $minor))" \
            >/dev/null 2>&1; then
            pythons+=("$python")
            break
        fi
    done
done
if [ "${#pythons[@]}" -eq 0 ]; then
    echo '*** SKIPPED: the Python package: no Python from 3.10 on with venv here' >&2
    exit 0
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
scripts/wheel.sh "${pythons[-1]}" "$dir"
for python in "${pythons[@]}"; do
    rm -rf "$dir/venv"
    "$python" -m venv "$dir/venv"
    more=()
    [ "$python" = "${pythons[-1]}" ] && more=(pyarrow polars pandas duckdb mypy)
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$dir"/*.whl pytest "${more[@]}"
    # From a directory without the sources: what is tested is what is installed.
    tests=$PWD/python/tests
    (cd "$dir" && venv/bin/python -m pytest -q -p no:cacheprovider "$tests")
done
(cd "$dir" && venv/bin/mypy --strict -p reveille)
printf 'python: the package passes with %s\n' "${pythons[*]}"
