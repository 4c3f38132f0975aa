#!/usr/bin/env bash
# Recordings from a real Prometheus server: e2e-prometheus.sh [REVEILLE]. Takes the system's
# Prometheus or unpacks Debian's package below target/, which starts no service.
set -eu

reveille=$(realpath "${1:-target/release/reveille}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
unpacked=$here/../target/prometheus

if ! command -v prometheus promtool >/dev/null 2>&1 && [ ! -x "$unpacked/usr/bin/promtool" ]; then
    mkdir -p "$unpacked"
    (
        cd "$unpacked"
        apt-get download -qq prometheus >/dev/null 2>&1 ||
            { apt-get update -qq && apt-get download -qq prometheus; } >&2
        dpkg-deb -x prometheus_*.deb .
    ) || printf 'e2e-prometheus: no Prometheus server; on Debian: apt-get install prometheus\n' >&2
fi
PATH=$PATH:$unpacked/usr/bin python3 "$here/e2e_prometheus.py" "$reveille"
