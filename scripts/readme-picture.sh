#!/usr/bin/env bash
# Draws README's picture, docs/images/plan.png: plans a limit for the example recording and takes a
# screenshot of the page's answer and main plots. readme-picture.sh [REVEILLE]. Needs Chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
picture=docs/images/plan.png
limit=300000
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

chromium=$(command -v chromium chromium-browser google-chrome | head -n 1) || {
    echo "readme-picture: Chromium is missing; on Debian: apt-get install chromium fonts-noto-core" >&2
    exit 1
}

"$reveille" plan docs/examples/requests.csv --for cgroup2 --today quota=50ms --goal p99=50ms \
    --machine quad-1s4c --base v6.12 --html "$dir/plan.html" >/dev/null

# The answer and CPU use under both settings; the page has more.
cat >>"$dir/plan.html" <<'STYLE'
<style>
    section:not([aria-labelledby=time]), section > p, .slim, .readout,
    h2 { display: none; }
    h1 { margin-top: 1rem; }
    p { margin: .4rem 0; }
</style>
STYLE
# Chromium as root runs without its sandbox only.
"$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=1 \
    --force-device-scale-factor=1.6 --window-size=1000,704 --virtual-time-budget=5000 \
    --screenshot="$dir/plan.png" "file://$dir/plan.html" 2>/dev/null

size=$(wc -c <"$dir/plan.png")
if [ "$size" -gt "$limit" ]; then
    echo "readme-picture: $size bytes are more than $limit: show less, or lower the scale" >&2
    exit 1
fi
mv "$dir/plan.png" "$picture"
echo "$picture: $size bytes"
