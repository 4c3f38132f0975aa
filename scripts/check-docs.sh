#!/usr/bin/env bash
# Checks the documents: every relative link leads somewhere, docs/index.md lists every page once,
# README.md stays short, the example files in the pages work, and what pages show of short runs is
# what the command prints: check-docs.sh [REVEILLE]. With --write first, it writes that again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

write=
[ "${1:-}" = --write ] && write=$1 && shift
reveille=$(realpath "${1:-target/release/reveille}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

python3 - "$dir" "$reveille" "$write" <<'CHECK'
import collections, json, os, re, shlex, subprocess, sys

README_LINES = 150
out, reveille, write = sys.argv[1:]
listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"],
                        capture_output=True, text=True, check=True).stdout.split()
text = {}
for path in filter(os.path.exists, listed):
    with open(path, encoding="utf-8") as file:
        text[path] = file.read()
errors = []


def prose(page):
    """A page without code, where brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page, flags=re.S | re.M))


def anchors(page):
    """Names of headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def links(path):
    """Each link of a page: the path it leads to, and the heading."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(text[path])):
        if re.match(r"[a-z]+:", link):
            continue
        to, _, anchor = link.partition("#")
        yield link, os.path.normpath(os.path.join(os.path.dirname(path), to)) if to else path, anchor


for path in text:
    for link, to, anchor in links(path):
        if not os.path.exists(to):
            errors.append(f"{path}: the link {link} leads nowhere: correct it or remove it")
        elif anchor and anchor not in anchors(text.get(to, "")):
            errors.append(f"{path}: {to} has no heading for {link}: name one it has")

index = collections.Counter(to for _, to, _ in links("docs/index.md"))
for path in sorted(p for p in text if p.startswith("docs/") and p != "docs/index.md"):
    if index[path] != 1:
        errors.append(f"docs/index.md links {path} {index[path]} times: list every page once")
lines = text["README.md"].count("\n")
if lines > README_LINES:
    errors.append(f"README.md has {lines} lines: move detail to docs/, {README_LINES} is the limit")

# An example begins with its file's name: ```toml, then `# NAME.toml`.
for page in text.values():
    for name, body in re.findall(r"^```toml\n# (\w+\.toml)\n(.*?)^```", page, re.S | re.M):
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(body)


def run(*args):
    done = subprocess.run([reveille, *args], cwd=out, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"reveille {shlex.join(args)} fails:\n{done.stderr}")
    return done.stdout.strip()


def rerun(block):
    """A console with one command, and what it prints now."""
    command = re.search(r"^\$ reveille (.*?[^\\])\n", block[2], re.S | re.M)
    shown = run(*shlex.split(command[1].replace("\\\n", " ")))
    return f"{block[1]}```console\n{command[0]}{shown}\n```\n{block[3]}"


def constants(block):
    rows = json.loads(run("machines", "quad-1s4c", "--json"))["machine"]["constants"]
    cells = "".join("| `{key}` | {unit} | {meaning} | {value:g} | {low:g} to {high:g} |\n".format(**c)
                    for c in rows)
    head = "| key | unit | meaning | default | its range |\n|---|---|---|---:|---|\n"
    return f"{block[1]}{head}{cells}{block[3]}"


for path, page in text.items():
    new = re.sub(r"(<!-- run -->\n)(.*?)(<!-- /run -->)", rerun, page, flags=re.S)
    new = re.sub(r"(<!-- constants -->\n)(.*?)(<!-- /constants -->)", constants, new, flags=re.S)
    if new != page and write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != page:
        errors.append(f"{path} shows what reveille no longer prints: run scripts/check-docs.sh --write")
run("usage", "import", os.path.abspath("docs/examples/requests.csv"), "-o", "requests.parquet")
if errors:
    sys.exit("\n".join(errors))
print(f"docs: links, index and examples of {len(text)} pages hold")
CHECK
