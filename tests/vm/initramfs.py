"""The guest's file system, all of it in memory: busybox, guest/init, the programs and scripts
of a boot, in the format that the kernel unpacks (cpio "newc", Documentation/driver-api/
early-userspace/buffer-format.rst of Linux)."""

import os
import re
import shutil
import stat
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

DIRECTORIES = ("bin", "dev", "proc", "sys", "root", "etc", "boot", "tests", "lib", "lib64", "usr")


class BadProgram(Exception):
    """A program that cannot run in the guest, and why."""


class Initramfs:
    """Files by their path in the guest."""

    def __init__(self):
        self.archive = []
        self.there = set()
        for name in DIRECTORIES:
            self.directory(name)
        # Some programs look for themselves and for their helpers below /usr.
        self.entry("usr/bin", stat.S_IFLNK | 0o777, b"../bin")
        self.entry("sbin", stat.S_IFLNK | 0o777, b"bin")

    def entry(self, path, mode, data=b""):
        path = path.lstrip("/")
        if path in self.there:
            return
        self.there.add(path)
        name = path.encode() + b"\0"
        fields = (
            len(self.there), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0,
        )
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        self.archive += [header, bytes(-len(header) % 4), data, bytes(-len(data) % 4)]

    def directory(self, path):
        if path:
            self.directory(os.path.dirname(path))
            self.entry(path, stat.S_IFDIR | 0o755)

    def file(self, source, path, mode=0o644):
        path = path.lstrip("/")
        self.directory(os.path.dirname(path))
        with open(source, "rb") as file:
            self.entry(path, stat.S_IFREG | mode, file.read())

    def program(self, source, path=None):
        """An executable without its debug symbols, and the shared libraries that it names."""
        path = path or f"bin/{os.path.basename(source)}"
        with open(source, "rb") as file:
            elf = file.read(4) == b"\x7fELF"
        if not elf:
            self.file(source, path, 0o755)
            return
        with tempfile.TemporaryDirectory() as directory:
            stripped = os.path.join(directory, "stripped")
            subprocess.run(["strip", "-o", stripped, source], check=True)
            self.file(stripped, path, 0o755)
        # A static program has none, and ldd ends with 1.
        libraries = subprocess.run(["ldd", source], text=True, capture_output=True, check=False).stdout
        if "not found" in libraries:
            raise BadProgram(f"{source}: its libraries are not all here:\n{libraries}")
        for library in re.findall(r"(/\S+) \(0x", libraries):
            self.file(library, library, 0o755)

    def busybox(self):
        busybox = shutil.which("busybox")
        self.program(busybox, "bin/busybox")
        applets = subprocess.run([busybox, "--list"], text=True, capture_output=True, check=True)
        for applet in applets.stdout.split():
            self.entry(f"bin/{applet}", stat.S_IFLNK | 0o777, b"busybox")

    def write(self, path):
        self.file(os.path.join(HERE, "guest", "init"), "init", 0o755)
        self.file(os.path.join(HERE, "guest", "functions.sh"), "lib/functions.sh")
        self.entry("TRAILER!!!", 0)
        with open(path, "wb") as file:
            file.writelines(self.archive)
