#!/usr/bin/env python3
"""Recordings from a real Prometheus server: e2e_prometheus.py REVEILLE

Two groups of this host, one of them throttled, stand for containers. A small exporter gives their
counters the names that cAdvisor does, with series of the pod and of a pause container beside them
and a restart on the way; Prometheus scrapes it. What `reveille record --prometheus` says must be
what the kernel counted. Without root or a controller for CPU it says SKIPPED and succeeds.
"""

import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cpu_files import CpuFiles

SECONDS = 45
NAMESPACE = "shop"
PODS = {"web": "web-6d5f7c8b9d-x7k2p", "calm": "calm-0"}
QUOTA_US = {"web": 20_000, "calm": 100_000}
# CPU time of a piece of work, and pieces in a second.
LOADS = {"web": (0.012, 11), "calm": (0.0005, 20)}


class Group(CpuFiles):
    """A group with a quota per 100 ms, under either version of cgroups."""

    def __init__(self, name):
        self.name = name
        unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        roots = ["/sys/fs/cgroup"] if unified else ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"]
        roots = sorted({os.path.realpath(root) for root in roots})
        self.dirs = [pathlib.Path(root, f"reveille-e2e-{os.getpid()}-{name}") for root in roots]
        self.unified = unified
        try:
            self.make()
        except (OSError, StopIteration):
            self.remove()
            raise

    def make(self):
        if self.unified:
            pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+cpu")
        for path in self.dirs:
            path.mkdir()
        self.limit(QUOTA_US[self.name])

    def run(self):
        """A process that works in the group until it is killed."""
        work, rate = LOADS[self.name]
        pid = os.fork()
        if pid:
            return pid
        for path in self.dirs:
            (path / "cgroup.procs").write_text(str(os.getpid()))
        draw = random.Random(self.name)
        at = time.monotonic()
        while True:
            at += draw.expovariate(rate)
            time.sleep(max(0.0, at - time.monotonic()))
            until = time.thread_time() + draw.expovariate(1 / work)
            while time.thread_time() < until:
                pass

    def remove(self):
        for path in self.dirs:
            for _ in range(100):
                try:
                    path.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)


def metrics(groups, begun, at_restart):
    """What cAdvisor would say. A container that starts again counts from 0."""
    lines = []
    for group in groups:
        counters = group.counters()
        pod = PODS[group.name]
        restarted = group.name == "calm" and time.monotonic() - begun > SECONDS / 2
        if restarted:
            before = at_restart.setdefault(group.name, counters)
            counters = [now - then for then, now in zip(before, counters)]
        used, periods, throttled, throttled_s = counters
        values = {
            "container_cpu_usage_seconds_total": used,
            "container_cpu_cfs_periods_total": periods,
            "container_cpu_cfs_throttled_periods_total": throttled,
            "container_cpu_cfs_throttled_seconds_total": throttled_s,
            "container_spec_cpu_quota": QUOTA_US[group.name],
            "container_spec_cpu_period": 100_000,
        }
        for container, ident in [("app", f"/kube/{pod}/{restarted}"), ("", f"/kube/{pod}"), ("POD", "/pause")]:
            labels = f'namespace="{NAMESPACE}",pod="{pod}",container="{container}",id="{ident}"'
            lines += [f"{name}{{{labels}}} {value}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def serve(groups, begun):
    at_restart = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            body = metrics(groups, begun, at_restart).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def check(what, good, seen=""):
    print(f"{'ok  ' if good else 'FAIL'} {what} {seen}", flush=True)
    if not good:
        sys.exit(1)


def reveille(*args, code=0):
    done = subprocess.run([REVEILLE, *args], capture_output=True, text=True)
    check(" ".join(args[:6]), done.returncode == code, f"exit code {done.returncode} {done.stderr}")
    return done


def tests(url, groups, begun, temp):
    before = {group.name: group.counters() for group in groups}
    time.sleep(SECONDS - (time.monotonic() - begun))
    # Readings of the first seconds lie before `before`, so it is held against the kernel's sum.
    after = {group.name: group.counters() for group in groups}

    directory = temp / "all"
    every = ["record", "--prometheus", url, "--all", "--since", "5m", "-o", str(directory)]
    fleet = json.loads(reveille(*every, "--json").stdout)
    names = sorted(container["name"] for container in fleet["containers"])
    wanted = sorted(f"{NAMESPACE}/{pod}/app" for pod in PODS.values())
    check("containers, without pods and pause containers", names == wanted, names)
    check("the throttled one is first", fleet["containers"][0]["name"] == f"{NAMESPACE}/{PODS['web']}/app")
    share = fleet["containers"][0]["throttled_share"]
    counted = [now - then for then, now in zip(before["web"], after["web"])]
    true = counted[2] / counted[1]
    check("throttled periods are the kernel's", abs(share - true) < 0.1, f"{share:.3f}, counted {true:.3f}")
    calm = fleet["containers"][1]
    check("the calm one was never throttled", calm["throttled_share"] == 0.0 and calm["p99_ns"] is None)

    files = sorted(directory.rglob("*.parquet"))
    stamps = [file.stat().st_mtime_ns for file in files]
    again = json.loads(reveille(*every, "--json").stdout)
    check("what is there is kept", [file.stat().st_mtime_ns for file in files] == stamps)
    check("and gives the same table", again["containers"] == fleet["containers"])

    parts = []
    for part in ("1/2", "2/2"):
        done = reveille("fleet", str(directory), "--shard", part, "--json")
        parts.append(temp / f"part{part[0]}.json")
        parts[-1].write_text(done.stdout)
    whole = reveille("fleet", str(directory), "--json").stdout
    merged = reveille("fleet", *map(str, parts), "--json").stdout
    check("two parts merge into the whole", merged == whole)
    reveille("fleet", str(parts[0]), code=2)

    one = ["record", "--prometheus", url, "--namespace", NAMESPACE, "--since", "5m"]
    web = temp / "web.parquet"
    reveille(*one, "--workload", "deploy/web", "-o", str(web))
    shown = json.loads(reveille("show", str(web), "--json").stdout)
    limits = shown["limits"]
    check("its limits", (limits["quota_ns"], limits["period_ns"]) == (20_000_000, 100_000_000), limits)
    used = counted[0] / (SECONDS - 1)
    check("CPU use is the kernel's", abs(shown["mean_cpus"] - used) < 0.2 * used, f"{shown['mean_cpus']:.4f}, counted {used:.4f}")
    calm = temp / "calm.parquet"
    reveille(*one, "--workload", "sts/calm", "-o", str(calm))
    shown = json.loads(reveille("show", str(calm), "--json").stdout)
    check("a restart is joined", any("started over" in text for text in shown["warnings"]), shown["warnings"])
    done = reveille("plan", str(calm), "--goal", "p99=50ms", code=2)
    check("no less is advised for it", "not identified" in done.stderr)

    done = reveille(*one, "-o", str(temp / "two.parquet"), code=2)
    check("two containers are listed", all(name in done.stderr for name in wanted))
    reveille(*one, "--workload", "deploy/nobody", "-o", str(temp / "none.parquet"), code=2)
    check("nothing is half written", not (temp / "none.parquet").exists())


def main():
    tools = [tool for tool in ("prometheus", "promtool") if not shutil.which(tool)]
    if tools or os.geteuid() != 0:
        print(f"SKIPPED: needs root and {', '.join(tools) or 'a CPU controller'}")
        return
    docs = pathlib.Path(__file__).resolve().parent.parent / "docs/prometheus"
    subprocess.run(["promtool", "check", "rules", docs / "rules.yml"], check=True)
    dashboard = json.loads((docs / "dashboard.json").read_text())
    rules = (docs / "rules.yml").read_text()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            metric = target["expr"].split("(")[-1].split("{")[0].split(", ")[-1]
            check(f"{panel['title']} reads a recording rule", f"record: {metric}" in rules, metric)

    groups, children = [], []
    temp = pathlib.Path(tempfile.mkdtemp(prefix="reveille-e2e-"))
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, lambda *_: sys.exit(130))
    try:
        try:
            for name in PODS:
                groups.append(Group(name))
        except (OSError, StopIteration) as error:
            print(f"SKIPPED: no group with a quota can be made here: {error}")
            return
        children = [group.run() for group in groups]
        begun = time.monotonic()
        target, port = serve(groups, begun), free_port()
        (temp / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            f"  - {{job_name: cadvisor, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}\n"
        )
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={temp}/prometheus.yml",
                f"--storage.tsdb.path={temp}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=(temp / "log").open("w"),
        )
        children.append(server.pid)
        tests(f"http://127.0.0.1:{port}", groups, begun, temp)
        server.kill()
        done = reveille(
            "record", "--prometheus", f"http://127.0.0.1:{port}", "-o", str(temp / "x.parquet"), code=1
        )
        check("a server that is gone is named", f"127.0.0.1:{port}" in done.stderr)
        print("recordings from Prometheus: all as the kernel counted")
    finally:
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        for group in groups:
            group.remove()
        shutil.rmtree(temp, ignore_errors=True)


if __name__ == "__main__":
    REVEILLE = os.path.abspath(sys.argv[1])
    main()
