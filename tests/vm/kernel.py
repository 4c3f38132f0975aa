#!/usr/bin/env python3
"""The kernel that the guest boots: Debian's cloud kernel of the newest suite whose kernel has
sched_ext, or a kernel image of your own. Kept in target/vm/kernel; prints where.

    kernel.py [--kernel SERIES|IMAGE] [--fetch]
        SERIES   for example 7.2 or 6.17: the newest of that series instead of the newest of all
        IMAGE    path of a bzImage or vmlinux
        --fetch  ask the mirror again, also if a kernel is there

Beside the kernel lie vmlinux.btf, its type information, and vmlinux.h, made from that;
target/vm/vmlinux.btf and target/vm/vmlinux.h are those of the kernel named last.
"""

import argparse
import dataclasses
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from debian import NotToBeHad, Suite, run  # noqa: E402

CACHE = os.path.join(ROOT, "target", "vm")
KERNELS = os.path.join(CACHE, "kernel")

# Suites with a cloud kernel that has sched_ext, in the order they are tried. Debian 13's own
# kernel, 6.12, is built without it.
SUITES = ("trixie-backports", "sid")

# What the guest cannot do without: the scheduler class, types for BPF, a way in (PVH: QEMU
# starts the unpacked kernel), a console, a port for results, scripts as programs.
NEEDED = (
    "SCHED_CLASS_EXT", "BPF_JIT", "DEBUG_INFO_BTF", "PVH", "SERIAL_8250_CONSOLE", "VIRTIO_PCI",
    "VIRTIO_CONSOLE", "CFS_BANDWIDTH", "HOTPLUG_CPU", "DEVTMPFS", "BINFMT_SCRIPT",
)


@dataclasses.dataclass
class Kernel:
    """A kernel that is there, unpacked. `config` is missing beside an image of one's own, and beside
    one of which the suite has dropped it."""

    directory: str

    def __post_init__(self):
        self.vmlinux = os.path.join(self.directory, "vmlinux")
        self.config = os.path.join(self.directory, "config")
        with open(os.path.join(self.directory, "release"), encoding="utf-8") as file:
            self.release = file.read().strip()


def number(release):
    return [int(part) for part in re.findall(r"\d+", release)]


def newest(suite, series):
    """The release of the newest cloud kernel of a suite, or of one series of it."""
    found = (
        re.fullmatch(r"linux-image-(\d.*-cloud-amd64)", name)
        for name in suite.packages("linux-image-")
    )
    releases = [one[1] for one in found if one]
    if series:
        releases = [one for one in releases if re.match(re.escape(series) + r"\b", one)]
    if not releases:
        raise NotToBeHad(f"there is no cloud kernel{' ' + series if series else ''}")
    return max(releases, key=number)


def from_suite(suite, series, directory):
    """Fills a directory with the kernel of a suite; its release is the answer."""
    release = newest(suite, series)
    package = f"linux-image-{release}"
    with tempfile.TemporaryDirectory() as tree:
        suite.unpack(package, tree)
        # Newer packages are split, and linux-image only depends on the parts. A suite drops linux-base
        # of older kernels, and with it from 6.19 on the config.
        for part in suite.depends(package):
            if part in (f"linux-base-{release}", f"linux-binary-{release}") and suite.packages(part):
                suite.unpack(part, tree)
        wanted = {
            "config": (f"boot/config-{release}", f"usr/lib/modules/{release}/config"),
            "vmlinuz": (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz"),
        }
        for name, places in wanted.items():
            there = [path for path in (os.path.join(tree, at) for at in places) if os.path.exists(path)]
            if there:
                shutil.copy(there[0], os.path.join(directory, name))
            elif name == "vmlinuz":
                raise NotToBeHad(f"{package} has no vmlinuz")
    config = os.path.join(directory, "config")
    if os.path.exists(config):
        check_config(config, release)
    unpack(os.path.join(directory, "vmlinuz"), directory)
    return release


def check_config(path, release):
    with open(path, encoding="utf-8") as file:
        config = set(file.read().split("\n"))
    lacking = [name for name in NEEDED if f"CONFIG_{name}=y" not in config]
    if lacking:
        raise NotToBeHad(f"{release} is built without CONFIG_{', CONFIG_'.join(lacking)}")


def unpack(image, directory):
    """Writes vmlinux, vmlinux.btf and vmlinux.h of an image into a directory."""
    with open(image, "rb") as file:
        elf = elf_of(file.read())
    btf = section(elf, b".BTF")
    if btf is None or b"\0sched_ext_ops\0" not in btf:
        raise NotToBeHad("the kernel has no type information (BTF) with sched_ext_ops")
    for name, data in (("vmlinux", elf), ("vmlinux.btf", btf)):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)
    header = run(
        ["bpftool", "btf", "dump", "file", os.path.join(directory, "vmlinux.btf"), "format", "c"],
        "write vmlinux.h",
    )
    with open(os.path.join(directory, "vmlinux.h"), "w", encoding="utf-8") as file:
        file.write(header)


def elf_of(image):
    """The ELF file inside a bzImage, or the image itself if it is one."""
    if image.startswith(b"\x7fELF"):
        return image
    # The packed kernel stands behind the setup code; the magic number may by chance occur
    # before it.
    for magic, decompress in (
        (b"\x28\xb5\x2f\xfd", unzstd),
        (b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor().decompress(data)),
        (b"\x1f\x8b\x08", lambda data: zlib.decompressobj(31).decompress(data)),
    ):
        for found in re.finditer(re.escape(magic), image):
            try:
                elf = decompress(image[found.start():])
            except (lzma.LZMAError, zlib.error):
                continue
            if elf.startswith(b"\x7fELF"):
                return elf
    raise NotToBeHad("the image holds no kernel packed by zstd, xz or gzip")


def unzstd(data):
    # zstd complains about what follows the packed kernel, after it has written all of it.
    return subprocess.run(
        ["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    ).stdout


def section(elf, name):
    """A section of a 64-bit little-endian ELF file; None if it has none of that name."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, of_names = struct.unpack_from("<HHH", elf, 58)
    # Name, type, flags, address, offset, size of each section.
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for name_at, _, _, _, offset, length in headers:
        at = headers[of_names][4] + name_at
        if elf[at:elf.index(b"\0", at)] == name:
            return elf[offset:offset + length]
    return None


def link(target, path):
    """A symbolic link that is there at once, or as it was, whoever else makes it."""
    new = f"{path}.{os.getpid()}"
    os.symlink(target, new)
    os.replace(new, path)


def keep(fill, alias):
    """The kernel that `fill` puts into a directory, kept below its release and as `alias`."""
    os.makedirs(KERNELS, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KERNELS) as own:
        directory = os.path.join(own, "kernel")
        os.mkdir(directory)
        release = fill(directory)
        with open(os.path.join(directory, "release"), "w", encoding="utf-8") as file:
            file.write(release + "\n")
        place = os.path.join(KERNELS, release)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(directory, place)
    if alias != release:
        link(release, os.path.join(KERNELS, alias))
    return Kernel(place)


def from_suites(series):
    """The kernel of the first suite that has one with sched_ext."""
    reasons = []
    for name in SUITES:
        try:
            suite = Suite(name, os.path.join(CACHE, "apt"))
            return keep(lambda directory: from_suite(suite, series, directory), series or "newest")
        except NotToBeHad as why:
            reasons.append(f"{name}: {why}")
    raise NotToBeHad("; ".join(reasons))


def from_image(path):
    """The kernel in a file. Its release is named after its bytes, so that no two are mixed up."""
    with open(path, "rb") as file:
        release = f"image-{hashlib.sha256(file.read()).hexdigest()[:12]}"

    def fill(directory):
        unpack(path, directory)
        return release

    place = os.path.join(KERNELS, release)
    return Kernel(place) if os.path.exists(place) else keep(fill, release)


def provide(wanted=None, fetch=False):
    """The kernel asked for: a series, the path of an image, or None for the newest."""
    if wanted and os.path.isfile(wanted):
        kernel = from_image(wanted)
    elif wanted and not re.fullmatch(r"\d+\.\d+(\.\d+)?", wanted):
        raise NotToBeHad(f"{wanted}: neither a file nor a series such as 7.2")
    else:
        place = os.path.realpath(os.path.join(KERNELS, wanted or "newest"))
        there = os.path.exists(os.path.join(place, "release"))
        kernel = Kernel(place) if there and not fetch else from_suites(wanted)
    for name in ("vmlinux.btf", "vmlinux.h"):
        link(os.path.relpath(os.path.join(kernel.directory, name), CACHE), os.path.join(CACHE, name))
    return kernel


def main():
    parser = argparse.ArgumentParser(description="Fetches the kernel that the guest boots.")
    parser.add_argument("--kernel", metavar="SERIES|IMAGE", help="7.2, 6.17, or a path")
    parser.add_argument("--fetch", action="store_true", help="ask the mirror again")
    args = parser.parse_args()
    try:
        kernel = provide(args.kernel, args.fetch)
    except NotToBeHad as why:
        sys.exit(f"kernel.py: no kernel with sched_ext: {why}")
    print(kernel.directory)


if __name__ == "__main__":
    main()
