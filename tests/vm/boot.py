#!/usr/bin/env python3
"""Boots a kernel with sched_ext in QEMU, without hardware virtualisation, runs scripts in it,
and brings back what they wrote.

    boot.py --script FILE... [--program FILE...] [--smp sockets=2,cores=4,threads=2] ...

A script is run by busybox's sh, as root, in the order given; what it puts into $OUT lies in
--out afterwards, with the kernel's log as `dmesg`. Exit code: that of the first script that
did not end with 0, 1 if the kernel complained, 3 if there is no result: no kernel, or the
guest crashed or took too long; or 4 if what failed is INCONCLUSIVE: the host took a quarter of the
guest's CPU time away, or others used as much of the host's.
"""

import argparse
import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import kernel
from initramfs import BadProgram, Initramfs

NO_RESULT = 3
INCONCLUSIVE = 4
# With so much taken from a guest, its stalls and shares say little about a scheduler.
BUSY = 0.25
LAST_LINES = 50

# A bug in QEMU before 8.1 (a CPU goes on with code that another has patched) stops a kernel of
# many CPUs at boot once in a while: "Oops: int3".
QEMU_AT_LEAST = (8, 1)

# What a healthy kernel never says, in its log.
COMPLAINT = re.compile(
    r"\bBUG\b|\bOops\b|WARNING: |Kernel panic|general protection|detected stalls|self-detected stall"
    r"|blocked for more than|soft lockup|hard LOCKUP|sched_ext: .* (errored|disabled \((?!unreg))"
)


class NoResult(Exception):
    """Why a boot tells nothing about its scripts."""


def topology(text):
    """sockets=2,cores=4,threads=2"""
    found = dict(re.findall(r"(sockets|cores|threads)=([1-9]\d{0,3})(?:,|$)", text))
    if ",".join(f"{key}={value}" for key, value in found.items()) != text or len(found) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not like sockets=2,cores=4,threads=2")
    return {key: int(value) for key, value in found.items()}


def memory_mib(text):
    found = re.fullmatch(r"([1-9]\d{0,4})([GM])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 2G or 1536M")
    return int(found[1]) * (1024 if found[2] == "G" else 1)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--script", action="append", required=True, help="run it in the guest; may be repeated")
    add("--program", action="append", default=[], metavar="FILE[:PATH]",
        help="an executable for the guest's /bin, with its libraries; may be repeated")
    add("--file", action="append", default=[], metavar="FILE:PATH",
        help="a file for the guest; may be repeated")
    add("--smp", type=topology, default="sockets=2,cores=4,threads=2", metavar="TOPOLOGY",
        help="CPUs; a socket is a NUMA node [sockets=2,cores=4,threads=2]")
    add("--memory", type=memory_mib, default="2G", help="of the guest [2G]")
    add("--timeout", type=float, default=300, metavar="S", help="for all of it, in seconds [300]")
    add("--out", metavar="DIR", help="where to put what the guest brings back")
    add("--kernel", metavar="SERIES|IMAGE", help="for example 7.2, or a bzImage [the newest]")
    add("--append", default="", metavar="TEXT", help="more for the kernel's command line")
    add("--allow", action="append", default=[], metavar="REGEX",
        help="lines of the kernel's log that are expected and no complaint; may be repeated")
    add("--plugin", metavar="FILE[,NAME=VALUE...]", help="a plugin of QEMU")
    add("--icount", type=int, nargs="?", const=1, choices=[1, 2, 4, 8, 16], metavar="NS",
        help="an instruction is one nanosecond of guest time, or so many; one CPU runs at a time: "
             "slow, and the same on every run")
    return parser.parse_args()


def qemu_version():
    try:
        text = subprocess.run(["qemu-system-x86_64", "--version"], text=True, capture_output=True,
                              check=True).stdout
    except FileNotFoundError:
        raise NoResult("qemu-system-x86_64 is missing; scripts/need.sh qemu installs it") from None
    version = tuple(int(part) for part in re.search(r"version (\d+)\.(\d+)", text).groups())
    if version < QEMU_AT_LEAST:
        raise NoResult(f"QEMU {version[0]}.{version[1]} is too old: 8.1 or newer is needed, since "
                       "older ones crash kernels of many CPUs")
    return version


def initramfs(args, guest_kernel, path):
    files = Initramfs()
    files.busybox()
    for program in args.program:
        source, _, place = program.partition(":")
        files.program(source, place or None)
    for file in args.file:
        source, _, place = file.partition(":")
        files.file(source, place)
    for number, script in enumerate(args.script):
        files.file(script, f"tests/{number:02}-{name_of(script)}")
    if os.path.exists(guest_kernel.config):
        files.file(guest_kernel.config, f"boot/config-{guest_kernel.release}")
    files.write(path)


def name_of(script):
    return os.path.splitext(os.path.basename(script))[0]


def command(args, guest_kernel, initrd, results):
    smp = args.smp
    nodes = []
    for node in range(smp["sockets"]):
        size = args.memory // smp["sockets"]
        nodes += ["-object", f"memory-backend-ram,id=m{node},size={size}M",
                  "-numa", f"node,nodeid={node},memdev=m{node}",
                  "-numa", f"cpu,node-id={node},socket-id={node}"]
    cpus = smp["sockets"] * smp["cores"] * smp["threads"]
    # With icount the time stamp counter runs at 1 GHz, otherwise at the host's rate. lpj tells
    # the kernel how fast it is (at 250 Hz): measured by busy waiting, CPU by CPU, it takes
    # half of the boot, and fails when the host is busy. Too high only makes waits longer.
    lpj = 4_000_000 // args.icount if args.icount else 20_000_000
    append = [
        "console=ttyS0", "quiet", "panic=-1", f"lpj={lpj}", "tsc=reliable", "mitigations=off",
        "nokaslr", "audit=0", "log_buf_len=1M",
        # A CPU of the guest may wait long for a CPU of the host.
        "rcupdate.rcu_cpu_stall_timeout=120", "watchdog_thresh=60", args.append,
    ]
    accelerate = ["-accel", "tcg,thread=multi"]
    if args.icount:
        accelerate = ["-accel", "tcg,thread=single", "-icount",
                      f"shift={args.icount.bit_length() - 1},sleep=off"]
    else:
        append.append(f"HOST_CPUS={os.cpu_count()}")
    if args.plugin:
        accelerate += ["-plugin", args.plugin]
    return [
        "qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", "pc", *accelerate,
        # QEMU's AMD model hides hyperthreads; 5-level page tables only cost.
        "-cpu", "max,vendor=GenuineIntel,-la57",
        "-smp", f"{cpus},sockets={smp['sockets']},cores={smp['cores']},threads={smp['threads']}",
        "-m", f"{args.memory // smp['sockets'] * smp['sockets']}M", *nodes,
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-device", "virtio-serial-pci", "-chardev", f"file,id=results,path={results}",
        "-device", "virtserialport,chardev=results,name=results",
        "-kernel", guest_kernel.vmlinux, "-initrd", initrd, "-append", " ".join(append).strip(),
    ]


def die_with_parent():
    """QEMU ends when this process ends, however that happens."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Console:
    """Shows what the guest prints, and keeps it."""

    def __init__(self, stream):
        self.lines = []
        self.stream = stream
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for raw in self.stream:
            # Firmware and kernel end lines by CR LF, and clear the screen.
            line = re.sub(r"\x1b\[[0-9;?=]*[A-Za-z]|\x1bc|\r", "", raw.decode(errors="replace")).rstrip()
            self.lines.append(line)
            print(line, flush=True)


def run_guest(qemu, timeout):
    """Runs QEMU to its end."""
    process = subprocess.Popen(
        qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,
    )
    console = Console(process.stdout)
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise NoResult("\n".join(
            [f"the guest did not end in {timeout:g} s; its last lines:", *console.lines[-LAST_LINES:]]
        )) from None
    finally:
        process.kill()
        process.wait()
        console.reader.join()
    if code != 0:
        raise NoResult(f"QEMU ended with {code}: {shlex.join(qemu)}")


def others_share(before, after, own_seconds):
    """How much of the host's CPU time between two first lines of /proc/stat went to others than
    a process that used `own_seconds`: to other programs, and to the hypervisor (steal)."""
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(b) - int(a) for a, b in zip(before.split()[1:9], after.split()[1:9])
    )
    busy = user + nice + system + irq + softirq
    own = min(busy, own_seconds * os.sysconf("SC_CLK_TCK"))
    return (busy - own + steal) / max(1, busy + idle + iowait + steal)


def host_time():
    """The host's CPU time since boot, and that of this script's children that have ended."""
    with open("/proc/stat", encoding="ascii") as file:
        times = os.times()
        return file.readline(), times.children_user + times.children_system


def collect(results, out):
    try:
        with tarfile.open(results) as archive:
            for member in archive:
                # Only files, and only below `out`: links and devices stay in the guest.
                if member.isfile():
                    path = os.path.join(out, os.path.normpath("/" + member.name).lstrip("/"))
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with archive.extractfile(member) as source, open(path, "wb") as file:
                        shutil.copyfileobj(source, file)
    except (tarfile.TarError, OSError) as why:
        raise NoResult(f"the guest brought nothing back: it crashed before its end ({why})") from None


def is_busy(args, share):
    """Can so much of the host that others took explain a failure? Not where instructions are the clock."""
    return not args.icount and share >= BUSY


def verdict(args, out, others):
    """Prints how each script ended, on a host of which others used so much; the exit code."""
    codes = []
    for number, script in enumerate(args.script):
        name = name_of(script)
        try:
            with open(os.path.join(out, f"{number:02}-{name}.exit"), encoding="utf-8") as file:
                ended, taken = (int(word) for word in file.read().split())
        except (OSError, ValueError):
            raise NoResult(f"{name}: the guest ended without a result of it") from None
        busy = is_busy(args, max(taken / 100, others))
        if ended == 0:
            print(f"boot.py: passed: {name}")
        elif busy:
            print(f"boot.py: INCONCLUSIVE: {name} (exit code {ended}): the host took {taken}% of the "
                  f"guest's CPU time, others used {others:.0%} of the host's CPUs")
            codes.append(INCONCLUSIVE)
        else:
            print(f"boot.py: FAILED: {name} (exit code {ended})")
            codes.append(ended)
    with open(os.path.join(out, "dmesg"), encoding="utf-8", errors="replace") as file:
        log = file.read().splitlines()
    complaints = [
        line for line in log
        if COMPLAINT.search(line) and not any(re.search(allowed, line) for allowed in args.allow)
    ]
    for line in complaints[:LAST_LINES]:
        print(f"boot.py: FAILED: the kernel says: {line}")
    failed = [code for code in codes if code != INCONCLUSIVE]
    if failed or complaints:
        return (failed + [1])[0]
    return INCONCLUSIVE if codes else 0


def main():
    args = arguments()
    begin = time.monotonic()
    others = 0.0
    used = 0.0
    with tempfile.TemporaryDirectory() as own:
        out = args.out or os.path.join(own, "out")
        os.makedirs(out, exist_ok=True)
        try:
            qemu_version()
            guest_kernel = kernel.provide(args.kernel)
            initrd = os.path.join(own, "initramfs")
            initramfs(args, guest_kernel, initrd)
            results = os.path.join(own, "results")
            smp = args.smp
            print(f"boot.py: Linux {guest_kernel.release} on {smp['sockets']} x {smp['cores']} x "
                  f"{smp['threads']} CPUs", flush=True)
            stat, own = host_time()
            try:
                run_guest(command(args, guest_kernel, initrd, results), args.timeout)
            finally:
                stat_after, own_after = host_time()
                used = own_after - own
                others = others_share(stat, stat_after, used)
                print(f"boot.py: others used {others:.0%} of the host's CPUs")
            collect(results, out)
            code = verdict(args, out, others)
        except (NoResult, BadProgram, kernel.NotToBeHad, OSError) as why:
            busy = is_busy(args, others)
            print(f"boot.py: {'INCONCLUSIVE' if busy else 'FAILED'}: {why}", file=sys.stderr)
            return INCONCLUSIVE if busy else NO_RESULT
    print(f"boot.py: {time.monotonic() - begin:.1f} s, {used:.1f} s of CPU time")
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
