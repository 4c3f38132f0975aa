#!/usr/bin/env python3
"""Packages of a Debian suite that this machine's apt does not list: from the mirror that
its own sources name. apt itself fetches, and checks signatures and sums; nothing below
/etc/apt is changed.

    debian.py install SUITE PACKAGE...     as root; for example bookworm-backports
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# The index of a suite is at most some 15 MB, a kernel's package at most 100 MB.
FETCH_TIMEOUT_S = 600


class NotToBeHad(Exception):
    """What cannot be had from the mirror, and why."""


def system():
    """ID and VERSION_CODENAME of os-release; empty where it does not say."""
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            pairs = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file.read(), re.M))
    except OSError:
        pairs = {}
    return pairs.get("ID", ""), pairs.get("VERSION_CODENAME", "")


def run(command, action):
    """Standard output of a command that must succeed. Debian keeps some where only root looks."""
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            command, text=True, capture_output=True, stdin=subprocess.DEVNULL,
            timeout=FETCH_TIMEOUT_S, env={**os.environ, "LC_ALL": "C", "PATH": path},
        )
    except FileNotFoundError:
        raise NotToBeHad(f"{action}: there is no {command[0]} here") from None
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{action}: no answer in {FETCH_TIMEOUT_S} s") from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        why = (errors or done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise NotToBeHad(f"{action}: {why}")
    return done.stdout


def mirror():
    """Address of the Debian archive in this machine's apt sources, whatever their format."""
    name, codename = system()
    if name != "debian":
        raise NotToBeHad(f"this is {name or 'an unnamed system'}, and its apt has no Debian archive")
    targets = run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)",
         "Created-By: Packages"],
        "read the sources of apt",
    )
    base = {codename, "stable", "testing", "unstable", "sid"}
    for release, component, uri in (line.split(" ", 2) for line in targets.splitlines()):
        if release in base and component == "main":
            return uri
    raise NotToBeHad(f"the sources of apt name no archive with {codename}/main")


def source_line(suite):
    signed_by = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    return f"deb {signed_by}{mirror()} {suite} main\n"


class Suite:
    """One suite for amd64, with lists and cache of its own below `state`; needs no root."""

    def __init__(self, name, state):
        self.name = name
        state = os.path.join(os.path.abspath(state), name)
        for part in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(state, part), exist_ok=True)
        sources = os.path.join(state, "sources.list")
        with open(sources, "w", encoding="utf-8") as file:
            file.write(source_line(name))
        settings = {
            "Dir::Etc::SourceList": sources,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": os.path.join(state, "lists"),
            "Dir::State::Status": "/dev/null",
            "Dir::Cache": os.path.join(state, "cache"),
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
        }
        self.options = [arg for key, value in settings.items() for arg in ("-o", f"{key}={value}")]
        run(["apt-get", *self.options, "update", "--error-on=any"], f"read the index of {name}")

    def packages(self, prefix):
        """Names that begin so."""
        names = run(["apt-cache", *self.options, "pkgnames", prefix], f"search {self.name}")
        return names.split()

    def depends(self, package):
        """Names of what a package depends on, the first of alternatives."""
        about = run(
            ["apt-cache", *self.options, "show", "--no-all-versions", package],
            f"look up {package} in {self.name}",
        )
        found = re.search(r"^Depends: (.*)$", about, re.M)
        return [one.split()[0] for one in found[1].split(",")] if found else []

    def unpack(self, package, into):
        """Fetches a package, whose sum apt checks, and unpacks its files."""
        with tempfile.TemporaryDirectory() as fetched:
            run(
                ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", fetched,
                 "apt-get", *self.options, "download", package],
                f"fetch {package} of {self.name}",
            )
            for file in glob.glob(os.path.join(fetched, "*.deb")):
                run(["dpkg-deb", "-x", file, into], f"unpack {package}")


def install(suite, packages):
    """Installs with the suite among the machine's own sources, for this one call of apt."""
    with tempfile.TemporaryDirectory() as own:
        parts = os.path.join(own, "parts")
        only = os.path.join(own, "only")
        if os.path.isdir("/etc/apt/sources.list.d"):
            shutil.copytree("/etc/apt/sources.list.d", parts)
        os.makedirs(parts, exist_ok=True)
        os.makedirs(only)
        if os.path.exists("/etc/apt/sources.list"):
            shutil.copy("/etc/apt/sources.list", os.path.join(parts, "machine.list"))
        for place in (parts, only):
            with open(os.path.join(place, "suite.list"), "w", encoding="utf-8") as file:
                file.write(source_line(suite))
        apt = ["apt-get", "-qq", "-o", "Dir::Etc::SourceList=/dev/null"]
        run(
            [*apt, "-o", f"Dir::Etc::SourceParts={only}", "-o", "APT::Get::List-Cleanup=0",
             "update", "--error-on=any"],
            f"read the index of {suite}",
        )
        run(
            [*apt, "-o", f"Dir::Etc::SourceParts={parts}", "install", "--yes",
             "--no-install-recommends", "--target-release", suite, *packages],
            f"install {' '.join(packages)} of {suite}",
        )


def main():
    if len(sys.argv) < 4 or sys.argv[1] != "install":
        sys.exit(__doc__)
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    try:
        install(sys.argv[2], sys.argv[3:])
    except NotToBeHad as why:
        sys.exit(f"debian.py: {why}")


if __name__ == "__main__":
    main()
