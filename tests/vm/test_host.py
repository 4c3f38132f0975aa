#!/usr/bin/env python3
"""What the scripts of this directory do on the host, without a guest."""

import argparse
import contextlib
import gzip
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import unittest.mock

import boot
import cost_table
import kernel
from initramfs import Initramfs

BTF = b"\x9f\xeb\x01\0 types \0sched_ext_ops\0"


def elf_with(section, data, directory):
    """An object file as a kernel might be, small."""
    plain, done = (os.path.join(directory, name) for name in ("plain.o", "done.o"))
    with open(os.path.join(directory, "data"), "wb") as file:
        file.write(data)
    subprocess.run(["cc", "-x", "c", "-c", "-", "-o", plain], input=b"int kernel;", check=True)
    subprocess.run(
        ["objcopy", "--add-section", f"{section}={file.name}", plain, done], check=True
    )
    with open(done, "rb") as file:
        return file.read()


class HostTest(unittest.TestCase):
    def test_what_others_take_is_neither_idle_nor_the_guest(self):
        tick = os.sysconf("SC_CLK_TCK")
        before = "cpu  100 0 50 1000 0 0 0 0 0 0"
        # 10 s: 6 busy, of which the guest used 4; 3 idle; 1 stolen.
        after = f"cpu  {100 + 5 * tick} 0 {50 + tick} {1000 + 3 * tick} 0 0 0 {tick} 0 0"
        self.assertAlmostEqual(boot.others_share(before, after, 4), 0.3)
        self.assertEqual(boot.others_share(before, before, 0), 0)

    def test_a_failure_is_inconclusive_on_a_busy_host_only(self):
        cases = [  # What the scripts left, icount, others' share, a complaint; the exit code.
            (["0 90"], False, 0.9, "", 0),
            (["2 10"], False, 0.1, "", 2),
            (["2 40"], False, 0.1, "", boot.INCONCLUSIVE),
            (["2 10"], False, 0.3, "", boot.INCONCLUSIVE),
            (["2 0"], True, 0.9, "", 2),
            (["1 40", "0 0"], False, 0.1, "", boot.INCONCLUSIVE),
            (["1 40"], False, 0.9, "BUG: scheduling while atomic", 1),
        ]
        for exits, icount, others, complaint, code in cases:
            with tempfile.TemporaryDirectory() as out:
                names = [f"{number:02}-test" for number in range(len(exits))]
                for name, text in [*((f"{n}.exit", e) for n, e in zip(names, exits)), ("dmesg", complaint)]:
                    with open(os.path.join(out, name), "w", encoding="utf-8") as file:
                        file.write(text)
                args = argparse.Namespace(script=["test.sh"] * len(exits), icount=icount, allow=[])
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(boot.verdict(args, out, others), code, exits)


class KernelTest(unittest.TestCase):
    def test_a_config_that_the_suite_has_dropped_is_no_obstacle(self):
        release = "7.1.13+deb13-cloud-amd64"
        image, binary = f"linux-image-{release}", f"linux-binary-{release}"

        class OldSuite:
            """linux-base is gone, and with it the config."""

            def packages(self, prefix):
                return [name for name in (image, binary) if name.startswith(prefix)]

            def depends(self, _):
                return ["dracut", f"linux-base-{release}", binary]

            def unpack(self, package, tree):
                assert package in (image, binary), package
                if package == binary:
                    os.mkdir(os.path.join(tree, "boot"))
                    with open(os.path.join(tree, "boot", f"vmlinuz-{release}"), "wb") as file:
                        file.write(b"image")

        with tempfile.TemporaryDirectory() as out, unittest.mock.patch("kernel.unpack") as unpack:
            self.assertEqual(kernel.from_suite(OldSuite(), "7.1", out), release)
            unpack.assert_called_once()
            self.assertEqual(os.listdir(out), ["vmlinuz"])

    def test_the_kernel_is_found_in_an_image_however_it_is_packed(self):
        with tempfile.TemporaryDirectory() as directory:
            elf = elf_with(".BTF", BTF, directory)
        zstd = subprocess.run(["zstd", "-cq"], input=elf, stdout=subprocess.PIPE, check=True).stdout
        # A magic number by chance before the kernel, and other bytes behind it, as in a bzImage.
        for packed in (zstd, lzma.compress(elf), gzip.compress(elf)):
            self.assertEqual(kernel.elf_of(b"setup" + packed[:6] + b"code" + packed + b"\1\2\3\4"), elf)
        self.assertEqual(kernel.elf_of(elf), elf)
        with self.assertRaises(kernel.NotToBeHad):
            kernel.elf_of(b"MZ no kernel at all")

    def test_a_section_is_found_by_its_name(self):
        with tempfile.TemporaryDirectory() as directory:
            elf = elf_with(".BTF", BTF, directory)
        self.assertEqual(kernel.section(elf, b".BTF"), BTF)
        self.assertIsNone(kernel.section(elf, b".BTF_ids"))

    def test_a_kernel_without_sched_ext_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "config")
            options = [f"CONFIG_{name}=y" for name in kernel.NEEDED]
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(options))
            kernel.check_config(path, "7.2")
            options[options.index("CONFIG_SCHED_CLASS_EXT=y")] = "# CONFIG_SCHED_CLASS_EXT is not set"
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(options))
            with self.assertRaisesRegex(kernel.NotToBeHad, "7.2 .*CONFIG_SCHED_CLASS_EXT$"):
                kernel.check_config(path, "7.2")

    def test_the_newest_kernel_is_chosen_by_number_and_series(self):
        class Archive:
            @staticmethod
            def packages(_prefix):
                return [
                    "linux-image-7.2.9+deb13-cloud-amd64", "linux-image-7.2.13+deb13-cloud-amd64",
                    "linux-image-7.2.14+deb13-cloud-amd64-dbg", "linux-image-7.10.1+deb13-amd64",
                    "linux-image-cloud-amd64", "linux-image-7.1.20+deb13-cloud-amd64",
                    "linux-image-6.1.99+deb13-cloud-amd64",
                ]

        self.assertEqual(kernel.newest(Archive, None), "7.2.13+deb13-cloud-amd64")
        self.assertEqual(kernel.newest(Archive, "7.1"), "7.1.20+deb13-cloud-amd64")
        with self.assertRaises(kernel.NotToBeHad):
            kernel.newest(Archive, "6.12")


class BootTest(unittest.TestCase):
    def test_topologies(self):
        self.assertEqual(
            boot.topology("sockets=2,cores=4,threads=2"), {"sockets": 2, "cores": 4, "threads": 2}
        )
        for wrong in ("", "16", "sockets=2", "sockets=0,cores=4,threads=2", "cores=1,cores=2,threads=1",
                      "sockets=2,cores=4,threads=2,", "sockets=2,cores=4,threads=2,dies=1"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=wrong):
                boot.topology(wrong)

    def test_complaints(self):
        for line in (
            "BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "WARNING: kernel/sched/core.c:1234 at rq_clock+0x1/0x2, CPU#3: storm/77",
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [storm:77]",
            "INFO: task storm:77 blocked for more than 120 seconds.",
            'sched_ext: BPF scheduler "reveille" disabled (runnable task stall)',
        ):
            self.assertRegex(line, boot.COMPLAINT)
        for line in (
            'sched_ext: BPF scheduler "reveille" enabled',
            'sched_ext: BPF scheduler "reveille" disabled (unregistered from user space)',
            "smpboot: CPU 3 is now offline",
            "clocksource: tsc: mask: 0xffffffffffffffff",
        ):
            self.assertNotRegex(line, boot.COMPLAINT)

    def test_only_files_come_back_and_only_to_their_place(self):
        with tempfile.TemporaryDirectory() as directory:
            results, out = (os.path.join(directory, name) for name in ("results", "deep/out"))
            with tarfile.open(results, "w") as archive:
                for name in ("./in/place", "../../outside"):
                    member = tarfile.TarInfo(name)
                    member.size = 4
                    archive.addfile(member, io.BytesIO(b"data"))
                link = tarfile.TarInfo("link")
                link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(link)
            boot.collect(results, out)
            found = [os.path.relpath(os.path.join(at, name), directory)
                     for at, _, names in os.walk(directory) for name in names]
            self.assertEqual(sorted(found), ["deep/out/in/place", "deep/out/outside", "results"])

    def test_a_guest_that_brought_nothing_back_has_no_result(self):
        with tempfile.TemporaryDirectory() as directory:
            results = os.path.join(directory, "results")
            with open(results, "wb"):
                pass
            with self.assertRaises(boot.NoResult):
                boot.collect(results, directory)


class InitramfsTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cpio"), "cpio is not here")
    def test_cpio_unpacks_it(self):
        with tempfile.TemporaryDirectory() as directory:
            files = Initramfs()
            files.file(__file__, "tests/deep/test")
            files.program("/bin/sh", "bin/dash")
            path = os.path.join(directory, "initramfs")
            files.write(path)
            with open(path, "rb") as archive:
                subprocess.run(["cpio", "-i", "-d", "--quiet"], stdin=archive, cwd=directory, check=True)
            with open(__file__, "rb") as one, open(os.path.join(directory, "tests/deep/test"), "rb") as two:
                self.assertEqual(one.read(), two.read())
            self.assertTrue(os.access(os.path.join(directory, "init"), os.X_OK))
            # The copy runs on the libraries that were packed with it.
            done = subprocess.run(
                [os.path.join(directory, "lib64/ld-linux-x86-64.so.2"), "--library-path",
                 os.path.join(directory, "lib/x86_64-linux-gnu"), os.path.join(directory, "bin/dash"),
                 "-c", "exit 7"], check=False,
            )
            self.assertEqual(done.returncode, 7)


class CostTest(unittest.TestCase):
    """What is read from a boot that was made up: 40 ns per call, 1.1 ns per instruction."""

    def bring_back(self, directory, name, programs, wakeups=1000, kernel_wakeups=1003):
        files = {
            "before": [{"id": 7, "name": "x_running", "run_time_ns": 10**9, "run_cnt": 10**6}],
            "after": [
                {"id": 7, "name": "x_running", "run_time_ns": 10**9, "run_cnt": 10**6},
                *({"id": 20 + number, "name": program, "run_time_ns": ns, "run_cnt": calls}
                  for number, (program, calls, ns) in enumerate(programs)),
            ],
            "wakeups": {"cpus": 8, "pairs": 2, "wakeups": wakeups, "idle_share": 0.5,
                        "kernel_wakeups": kernel_wakeups, "seconds": 0.1},
        }
        for suffix, content in files.items():
            with open(os.path.join(directory, f"{name}.idle.{suffix}"), "w", encoding="utf-8") as file:
                json.dump(content, file)

    def test_the_statistics_and_the_turns_of_other_cpus_are_taken_out(self):
        with tempfile.TemporaryDirectory() as directory:
            self.bring_back(directory, "calibration", [("empty", 10, 400), ("thousand", 10, 11400)])
            self.bring_back(directory, "x", [("x_select_cpu", 1000, 40000 + 550000),
                                             ("x_select_cpu", 500, 20000 + 110000),
                                             ("fexit_futex_wake", 2000, 80000 + 220000)])
            costs = cost_table.costs(directory, "x", "idle")
            self.assertAlmostEqual(costs["by_callback"]["select_cpu"], 600)
            self.assertAlmostEqual(costs["by_callback"]["other"], 200)
            self.assertAlmostEqual(costs["instructions_per_wakeup"], 800)
            # What did not run in the window does not count.
            self.assertNotIn("running", costs["by_callback"])

    def test_figures_that_say_nothing_are_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            self.bring_back(directory, "calibration", [("empty", 10, 400), ("thousand", 10, 90000)])
            self.bring_back(directory, "x", [("x_enqueue", 1000, 500000)])
            with self.assertRaisesRegex(cost_table.Bad, "a thousand instructions took 8960 ns"):
                cost_table.costs(directory, "x", "idle")
            self.bring_back(directory, "calibration", [("empty", 10, 400), ("thousand", 10, 11400)])
            self.bring_back(directory, "x", [("x_enqueue", 1000, 500000)], kernel_wakeups=2000)
            with self.assertRaisesRegex(cost_table.Bad, "others woke too"):
                cost_table.costs(directory, "x", "idle")


if __name__ == "__main__":
    unittest.main()
