#!/usr/bin/env bash
# Updates what pages show of long runs: README.md (plan, compare, skill), docs/reading-results.md
# (demo), docs/results.md (score, misses, and bench from target/bench.json), and docs/fidelity.md.
# readme-demo.sh [REVEILLE [BENCH.json]]. Build and `make bench` first. Takes as long as all studies
# and the demo. scripts/check-docs.sh --write does the short runs, readme-picture.sh the picture.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reveille=${1:-target/release/reveille}
bench=${2:-target/bench.json}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$reveille" plan docs/examples/requests.csv --for cgroup2 --today quota=50ms --goal p99=50ms \
    --machine quad-1s4c --base v6.12 >"$dir/plan.txt"
"$reveille" study sis-short --no-explain >"$dir/study.txt"
"$reveille" compare --machine spr-2s56c --workload context_switch1 --load 112,224 \
    --base v6.2 --with +SIS_SHORT --warmup 400ms >"$dir/compare.txt"
"$reveille" study --all --json >"$dir/all.json"

python3 - "$dir" "$bench" <<'WRITE'
import json, os, re, sys

runs, bench_path = sys.argv[1:]


def paragraphs(name):
    """A command's output, each paragraph as its lines."""
    with open(f"{runs}/{name}", encoding="utf-8") as file:
        return [p.split("\n") for p in file.read().strip().split("\n\n")]


study, compared = paragraphs("study.txt"), paragraphs("compare.txt")
COMPARE = ["$ reveille compare --machine spr-2s56c --workload context_switch1 --load 112,224 \\",
           "      --base v6.2 --with +SIS_SHORT --warmup 400ms"]
header, footer = study[0], study[-1]
cases = [p for p in study if " against " in p[0]]


def demo():
    shown = [c for c in cases if c[0].startswith(("context_switch1,", "TCP_RR,"))]
    hidden = [c[0].split(",")[0] for c in cases if c not in shown]
    # A block ends with its source, which the study file holds as well.
    tables = [[l for l in c if not re.match(r"  published: |             \S", l)] for c in shown]
    explained = next(p for p in compared if "at load" in p[0])
    out = ["```console", "$ make demo", *header]
    for table in tables:
        out += ["", *table]
    out += ["", f"[… {' and '.join(hidden)}, sources, claims, explanations …]", "", *footer]
    out += ["", *COMPARE, "[…]", *explained, "```"]
    return "\n".join(out)


def compare():
    """The table, and what explains its largest change."""
    table = next(p for p in compared if " against " in p[0])[1:]
    explained = next(p for p in compared if "at load" in p[0])
    shown = ("  at load", "  wakeups/s", "    hot-line wait", "  wakeup p99")
    lines = [l for l in explained if l.startswith(shown)]
    return "\n".join(["```console", *COMPARE, *table, *lines, "```"])


def plan():
    """The answer, which comes before the table of settings."""
    command = ["$ reveille plan docs/examples/requests.csv --for cgroup2 --today quota=50ms --goal p99=50ms \\",
               "      --machine quad-1s4c --base v6.12"]
    return "\n".join(["```console", *command, *paragraphs("plan.txt")[0], "```"])


with open(f"{runs}/all.json", encoding="utf-8") as file:
    everything = json.load(file)


def score_line(name, studies, entry, rest):
    """Hits of one mechanism or of all, beside those of "nothing ever changes"."""
    skill = rest["skill"]
    fractions = [
        (entry["hits"], entry["counted"]), (skill["hits"], skill["changes"]),
        (skill["null_hits"], skill["changes"]), (skill["big_sign"], skill["big"]),
        (skill["big_hits"], skill["big"]), (skill["small_quiet"], skill["small"]),
        (rest["claim_hits"], rest["claims"]),
    ]
    cells = [f"{part} of {whole}" if whole else "–" for part, whole in fractions]
    return f"| {name} | {studies} | {' | '.join(cells)} |"


def score():
    out = [
        "| mechanism | study | hits | changes hit | no change | big: sign | big: hit "
        "| small: quiet | claims |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for m in everything["mechanisms"]:
        out.append(score_line(m["mechanism"], ", ".join(m["studies"]), m, m))
    out.append(score_line("**all**", "", everything["score"], everything))
    return "\n".join(out)


def skill():
    """README's lines on the shipped studies, beside the trivial prediction."""
    changes = everything["skill"]
    burst = next(m for m in everything["mechanisms"] if m["mechanism"] == "burst")
    return "\n".join([
        f"- **Quota and burst**, shipped studies: {burst['hits']} of {burst['counted']} absolute figures "
        "hit; they have no trivial",
        "  prediction.",
        f"- **Placement patches**, shipped studies: {changes['hits']} of {changes['changes']} published "
        f"changes hit; \"no change\" hits {changes['null_hits']}.",
        "  These figures were known when the model was made.",
    ])


def percent(change):
    return "" if change is None else f"{change:+.1f}%"


def states(modes, key, text):
    return " or ".join(f"{text(m[key])} ({100 * m['share']:.0f}%)" for m in modes)


def misses():
    out = ["| study | case | load | metric | predicted | published | r̂/r |",
           "|---|---|---:|---|---:|---:|---:|"]
    for study in everything["studies"]:
        for row in study["rows"]:
            # What a search looks at is in docs/fidelity.md alone.
            if row["verdict"] != "miss" or study["study"] == "search-statistics":
                continue
            changes = row["modes"]["changes"] if row["modes"] else []
            predicted = states(changes, "change_pct", percent) or percent(row["change_pct"])
            published = percent(row["published_change_pct"])
            if row["kind"] == "side":
                side = "baseline" if row["published_baseline"] is not None else "candidate"
                modes = row["modes"][side] if row["modes"] else []
                predicted = f"{row[side]['mean']:.3g}"
                if len(modes) > 1:
                    predicted = states(modes, "centre", lambda size: f"{size:.3g}")
                published = f"{row['published_' + side]:.4g}"
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            cells = (study["study"], row["case"], row["load"], row["metric"])
            out.append("| {} | {} | {} | {} | ".format(*cells) + f"{predicted} | {published} | {ratio} |")
    for study in everything["studies"]:
        for claim in study["claims"]:
            if claim["verdict"] == "miss":
                out.append(f"| {study['study']} | {claim['claim']} (claim) | | | | | |")
    return "\n".join(out)


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


pages = {
    "README.md": {"plan": plan(), "compare": compare(), "skill": skill()},
    "docs/reading-results.md": {"demo": demo()},
    "docs/results.md": {"score": score(), "misses": misses()},
}
if os.path.exists(bench_path):
    pages["docs/results.md"]["bench"] = bench()
else:
    print(f"{bench_path} is missing, so the bench block stays: run `make bench`", file=sys.stderr)
for path, blocks in pages.items():
    with open(path, encoding="utf-8") as file:
        page = file.read()
    for name, text in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        page, found = pattern.subn(lambda m: m[1] + text + "\n" + m[2], page)
        if found != 1:
            sys.exit(f"{path} has {found} blocks <!-- {name} -->; one is expected")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(path + ".new", path)
    print(f"{path}: {', '.join(blocks)} written")
WRITE
