#!/usr/bin/env bash
# Writes the measured blocks of README.md anew: <!-- demo --> and <!-- misses --> from
# runs of target/release/reveille, <!-- bench --> from target/bench.json. Build and
# `make bench` first. Takes as long as the study does.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
bench=${2:-target/bench.json}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$reveille" study sis-short --no-explain >"$dir/study.txt"
"$reveille" compare --machine spr-2s56c --workload context_switch1 --load 224 \
    --base v6.2 --with +SIS_SHORT >"$dir/compare.txt"

python3 - "$dir/study.txt" "$dir/compare.txt" "$bench" README.md <<'WRITE'
import json, os, re, sys

study_path, compare_path, bench_path, readme_path = sys.argv[1:]


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def paragraphs(lines):
    return [p.split("\n") for p in "\n".join(lines).strip().split("\n\n")]


study = paragraphs(lines_of(study_path))
header, footer = study[0], study[-1]
cases = [p for p in study if " against " in p[0]]


def demo():
    shown = [c for c in cases if c[0].startswith(("context_switch1,", "TCP_RR,"))]
    hidden = [c[0].split(",")[0] for c in cases if c not in shown]
    # A block ends with its source, which the study file holds as well.
    tables = [[l for l in c if not re.match(r"  published: |             \S", l)] for c in shown]
    explained = next(p for p in paragraphs(lines_of(compare_path)) if "at load" in p[0])
    out = ["```console", "$ make demo", *header]
    for table in tables:
        out += ["", *table]
    out += ["", f"[… {' and '.join(hidden)}, sources, claims, explanations …]", "", *footer]
    out += ["", "$ reveille compare --machine spr-2s56c --workload context_switch1 --load 224 \\",
            "      --base v6.2 --with +SIS_SHORT", "[…]", *explained, "```"]
    return "\n".join(out)


def misses():
    out = []
    for case in cases:
        name = case[0].split(",")[0]
        for line in case:
            cells = re.match(r"\s+(\d+) .*?(\S+%)\*?\s+(\S+%)\s+MISS$", line)
            if cells:
                load, change, published = cells.groups()
                out.append(f"| {name} | {load} | {change} | {published} |")
    for line in "\n".join(" ".join(p) for p in study if p[0] == "claims").split("  "):
        if line.startswith("MISS"):
            out.append(f"| {line.removeprefix('MISS').strip()} | | | |")
    if not out:
        return "Every counted row is a hit."
    return "\n".join(["| case | load | predicted | published |", "|---|---:|---:|---:|", *out])


def bench():
    with open(bench_path, encoding="utf-8") as file:
        result = json.load(file)
    out = [
        f"**{result['activations_per_s'] / 1e6:.2f} million activations per second** on one core:",
        "224 CPUs, 224 pairs of context_switch1, all mechanisms on, SIS_SHORT.",
        "",
        "| CPUs = pairs | ns per activation | bytes per CPU and its two tasks |",
        "|---:|---:|---:|",
    ]
    for g in result["growth"]:
        figures = (g["cpus"], g["ns_per_activation"], g["bytes_per_cpu_and_task"])
        out.append("| {:,} | {:.0f} | {:,} |".format(*figures))
    out += [
        "",
        "| policy | workload | activations/s | ns per activation |",
        "|---|---|---:|---:|",
    ]
    for m in result["mechanisms"]:
        quota = f", quota of {m['quota_cpus']} CPUs" if m["quota_cpus"] else ""
        workload = f"{m['workload']} {m['load']} on {m['machine']}{quota}"
        rate, ns = m["activations_per_s"] / 1e6, m["ns_per_activation"]
        out.append(f"| {m['policy']} | {workload} | {rate:.2f} M | {ns:.0f} |")
    return "\n".join(out)


with open(readme_path, encoding="utf-8") as file:
    readme = file.read()
blocks = {"demo": demo(), "misses": misses()}
if os.path.exists(bench_path):
    blocks["bench"] = bench()
else:
    print(f"{bench_path} is missing: the bench block stays; run `make bench`", file=sys.stderr)
for name, text in blocks.items():
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    readme, found = pattern.subn(lambda m: m[1] + text + "\n" + m[2], readme)
    if found != 1:
        sys.exit(f"README.md has {found} blocks <!-- {name} -->; one is expected")
with open(readme_path + ".new", "w", encoding="utf-8") as file:
    file.write(readme)
os.replace(readme_path + ".new", readme_path)
print(f"README.md: {', '.join(blocks)} written")
WRITE
