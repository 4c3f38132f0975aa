#!/usr/bin/env python3
"""Holds the advice of `reveille plan` against real groups of this host.

    live-limits.py advise   REVEILLE [--loads 1,2] [--pin CPU] >> advise.jsonl
    live-limits.py counters REVEILLE [--loads 1,2] [--pin CPU] >> counters.jsonl
    live-limits.py recorders REVEILLE [--loads 1,2] [--pin CPU] >> recorders.jsonl
    live-limits.py table advise.jsonl counters.jsonl recorders.jsonl

advise: 12 loads are recorded (four of them under a limit), planned for a p99 goal with 15%
head-room (if the plan refuses, from a recording without the limit, and then from a table of requests),
and run under the advice: as recorded, with 10% more work in every request, and with requests drawn
again; then, as recorded, under 15% more than the busiest 5 s used, as a percentile of use gives. The
cheapest quota that keeps the goal with 15% more work is found by bisection on the kernel, to 6%, with one
run per quota.

counters: 48 loads run under a limit while their counters are read every 15 s. The 90% ranges that
`plan` infers from those counters are held against the p99 and the throttled share that were
measured, under that limit and, for every third load, under 1.3 times as much.

recorders: 6 random loads that would use 40, 60 and 80% of 50 ms per 100 ms are recorded without a
limit, by tracing and by sampling at a time. What `plan` predicts from either under that limit is held
against a run under it.

Needs root and the cpu controller (v1: cpu and cpuacct). The loads' group has the largest weight. A
run is repeated, up to three times, if the same work takes 2% more CPU time than in the recording,
as it does while other programs fill the caches. Each row says what others used. --pin keeps the load
on one CPU, so that two instances can run at a time. All of it takes two hours.
"""

import argparse
import gc
import hashlib
import json
import math
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from cpu_files import CpuFiles

PERIOD_US = 100_000
STEP = 15

# Arrivals, threads, requests/s and ms of work per thread, goal for p99 in ms, recorded under a limit.
LOADS = [
    ("smooth", 1, 100, 2.5, 20, False),
    ("smooth", 1, 50, 6, 50, False),
    ("smooth", 1, 60, 4, 60, False),
    ("bursty", 1, 48, 4, 120, False),
    ("random", 1, 40, 6, 80, False),
    ("random", 1, 50, 5, 100, True),
    ("diurnal", 1, 60, 4, 80, True),
    ("diurnal", 1, 50, 4, 60, False),
    ("diurnal", 2, 40, 3, 100, True),
    ("together", 4, 15, 4, 50, False),
    ("random", 3, 25, 4, 60, False),
    ("random", 2, 30, 5, 80, True),
]
SECONDS = 30


def counted_load(number):
    """A load for counters, and its limit in multiples of its use."""
    draw = random.Random(f"counted {number}")
    kind = ("smooth", "random", "bursty", "diurnal", "random", "together")[number % 6]
    threads = draw.choice((1, 2, 3, 4)) if number % 2 else 1
    if kind == "together":
        threads = max(threads, 2)
    cpus = draw.uniform(0.1, 0.3)
    rate = 25 * (16 ** draw.random()) / threads
    return (kind, threads, rate, 1000 * cpus / threads / rate), (1.3, 1.7, 2.5)[number % 3]


def requests(kind, threads, rate, work_ms, seconds, seed):
    """Of each thread: (second of arrival, ms of work)."""
    draw = random.Random(seed)

    def stream():
        at, size = 0.0, 1
        while True:
            if kind == "smooth":
                at += draw.uniform(0.8, 1.2) / rate
            elif kind == "bursty":  # four at once on average
                at += draw.expovariate(rate / 4)
                size = 1 + int(math.log(draw.random()) / math.log(0.75))
            elif kind == "diurnal":  # a day of 10 s, between 0.2 and 1.8 times the mean
                at += draw.expovariate(1.8 * rate)
                if draw.random() > (1 + 0.8 * math.sin(at * math.tau / 10)) / 1.8:
                    continue
            else:
                at += draw.expovariate(rate)
            if at >= seconds:
                return
            for _ in range(size):
                yield at, work()

    def work():
        return work_ms * (draw.uniform(0.8, 1.2) if kind == "smooth" else draw.expovariate(1))

    if kind == "together":
        return list(zip(*([(at, work()) for _ in range(threads)] for at, _ in stream())))
    return [list(stream()) for _ in range(threads)]


def spin(iterations):
    hashlib.pbkdf2_hmac("sha256", b"reveille", b"reveille", iterations)


def iterations_per_ms():
    best = math.inf
    for _ in range(300):
        begin = time.perf_counter()
        spin(2000)
        best = min(best, time.perf_counter() - begin)
    return 2 / best


def p99(latencies):
    ordered = sorted(latencies)
    return 1000 * ordered[math.ceil(0.99 * len(ordered)) - 1]


def served_alone(threads):
    """p99 in ms if every thread had a CPU of its own."""
    latencies = []
    for own in threads:
        free = 0.0
        for at, work in own:
            free = max(free, at) + work / 1000
            latencies.append(free - at)
    return p99(latencies)


def busiest(threads):
    """CPUs used in the busiest 5 s: here the 90% quantile of use, to which the Vertical Pod Autoscaler
    adds 15%, and the 95% quantile, which KRR requests without a limit."""
    used = {}
    for own in threads:
        for at, work in own:
            used[at // 5] = used.get(at // 5, 0) + work
    return max(used.values()) / 5000


class Group(CpuFiles):
    """A task group below one of the largest weight."""

    def __init__(self):
        self.unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        roots = ["/sys/fs/cgroup"] if self.unified else ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"]
        self.name = f"reveille-live-{os.getpid()}/load"
        self.dirs = [pathlib.Path(root, self.name) for root in sorted({os.path.realpath(r) for r in roots})]
        if self.unified:
            pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+cpu")
        for path in self.dirs:
            path.parent.mkdir(exist_ok=True)
            if self.unified:
                (path.parent / "cgroup.subtree_control").write_text("+cpu")
            path.mkdir(exist_ok=True)
        weight = ("cpu.weight", "10000") if self.unified else ("cpu.shares", "262144")
        (self.file("cpu.stat").parent.parent / weight[0]).write_text(weight[1])

    def remove(self):
        for path in self.dirs:
            for _ in range(50):
                try:
                    path.rmdir()
                    path.parent.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # until the last process is gone
                    time.sleep(0.1)


class Host:
    def __init__(self, options):
        self.reveille, self.pin = options.reveille, options.pin
        self.group, self.workers = Group(), []
        self.per_ms = iterations_per_ms()
        self.dir = tempfile.TemporaryDirectory()

    def close(self):
        self.kill()
        self.group.remove()
        self.dir.cleanup()

    def kill(self):
        for pid in self.workers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.workers = []

    def run(self, threads, quota_us, goal_ms=None, record=None, read=False):
        """One run: p99 in ms, CPUs used, and what others used. With a goal it ends once that is
        missed; `record` has the file of each way to record, `read` reads the counters every 15 s."""
        self.group.limit(None)
        self.group.limit(quota_us)
        total = sum(map(len, threads))
        latencies = memoryview(mmap.mmap(-1, 8 * total)).cast("d")
        start = time.monotonic() + 1.0
        first = 0
        for own in threads:
            pid = os.fork()
            if pid == 0:
                self.work(own, start, latencies[first : first + len(own)])
            self.workers.append(pid)
            first += len(own)
        seconds = math.ceil(max(own[-1][0] for own in threads))
        time.sleep(max(0, start - time.monotonic()))
        to_record = ("record", "--cgroup", self.group.name, "--force", "--for", f"{seconds}s", "--json")
        recorders = [self.command(*to_record, "--how", how, "-o", file) for how, file in (record or {}).items()]
        before, cpus_before = self.group.counters(), cpu_times()
        readings = [(0, before)]
        end, missed = start + seconds + 20, False
        while self.workers and time.monotonic() < end and not missed:
            time.sleep(0.05)
            if read and time.monotonic() >= start + STEP * len(readings) <= start + seconds:
                readings.append((time.monotonic() - start, self.group.counters()))
            if goal_ms:
                late = sum(1 for latency in latencies if latency > goal_ms / 1000)
                missed = late > 0.01 * total
            self.workers = [pid for pid in self.workers if os.waitpid(pid, os.WNOHANG)[0] == 0]
        after, cpus_after = self.group.counters(), cpu_times()
        lasted = time.monotonic() - start
        self.kill()
        for recorder in recorders:
            _, err = recorder.communicate()
            if recorder.returncode != 0:
                raise RuntimeError(f"record: {err}")
        used = after[0] - before[0]
        taken = cpus_after - cpus_before
        periods = after[1] - before[1]
        return {
            "p99_ms": math.inf if missed else p99([latency or math.inf for latency in latencies]),
            "used_s": used,
            "pace": used / (sum(work for own in threads for _, work in own) / 1000),
            "others_cpus": round(max(0.0, taken - used) / lasted, 2),
            "throttled": (after[2] - before[2]) / periods if periods else 0.0,
            "readings": readings,
        }

    def work(self, own, start, latencies):
        """A worker's life; it does not return."""
        try:
            for path in self.group.dirs:
                (path / "cgroup.procs").write_text(str(os.getpid()))
            if self.pin is not None:
                os.sched_setaffinity(0, {self.pin})
            gc.disable()
            for number, (at, work) in enumerate(own):
                wait = start + at - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
                spin(max(1, int(work * self.per_ms)))
                latencies[number] = time.monotonic() - start - at
        finally:
            os._exit(0)

    def undisturbed(self, *args, pace=None, tries=3, **named):
        """A run whose work took the CPU time that it should; `pace` is that of the recording."""
        runs = []
        for _ in range(tries):
            runs.append(self.run(*args, **named))
            if runs[-1]["p99_ms"] == math.inf or runs[-1]["pace"] < 1.02 * (pace or 1.18):
                break
        return min(runs, key=lambda run: run["pace"])

    def command(self, *args):
        args = [self.reveille, *map(str, args)]
        return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def plan(self, recording, goal_ms, *more):
        """The plan, or why there is none."""
        cpus = 1 if self.pin is not None else os.cpu_count()
        plan = self.command(
            "plan", recording, "--goal", f"p99={goal_ms}ms", "--cpus", cpus, "--json", *more
        )
        out, err = plan.communicate()
        if not out:
            return None, " ".join(err.split())
        return json.loads(out), None

    def cheapest(self, threads, goal_ms, quota_us, pace):
        """The least quota that keeps the goal, from a first guess; none, if no limit does not either."""
        runs = []

        def holds(quota_us):
            runs.append(self.undisturbed(threads, quota_us, goal_ms=goal_ms, pace=pace, tries=2))
            return runs[-1]["p99_ms"] <= goal_ms

        seconds = max(own[-1][0] for own in threads)
        low = 100 * sum(work for own in threads for _, work in own) / seconds
        high = max(quota_us, 1.1 * low)
        most = PERIOD_US * (1 if self.pin is not None else os.cpu_count())
        while not holds(int(high)):
            if high >= most:
                return None, len(runs)
            low, high = high, min(1.3 * high, most)
        while high > 1.06 * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if holds(int(middle)) else (middle, high)
        return high, len(runs)


def cpu_times():
    """Seconds that all CPUs were busy."""
    values = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, values[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def grown(threads, factor):
    return [[(at, factor * work) for at, work in own] for own in threads]


def advise(host, number):
    kind, count, rate, work_ms, goal_ms, limited = LOADS[number - 1]

    def draw(seed):
        return requests(kind, count, rate, work_ms, SECONDS, f"{number} {seed}")

    threads = draw("recorded")
    file = pathlib.Path(host.dir.name, "load.parquet")
    alone = served_alone(threads)
    for _ in range(3):
        control = host.undisturbed(threads, None, record={"auto": file})
        if control["p99_ms"] < 1.15 * alone + 5:  # a tick of another program's
            break
    row = {"load": f"{number} {kind}, {count} × {rate}/s × {work_ms} ms", "limited": limited}
    row |= {"goal_ms": goal_ms, "alone_ms": alone, "unlimited_ms": control["p99_ms"], "runs": [control]}
    pace = control["pace"]
    free, why = host.plan(file, goal_ms)
    plan = free
    row |= {"from_unlimited_us": quota_of(free), "unlimited_refused": why}
    if limited:
        quota_us = int(2 * PERIOD_US * control["used_s"] / SECONDS)
        row["runs"].append(host.undisturbed(threads, quota_us, record={"auto": file}))
        pace = row["runs"][-1]["pace"]
        row |= {"recorded_us": quota_us, "recorded_throttled": row["runs"][-1]["throttled"]}
        row["recorded_ms"] = row["runs"][-1]["p99_ms"]
        plan, why = host.plan(file, goal_ms)
    row["refused"] = why
    plan = plan or free  # a refusal asks for a recording without the limit
    if not quota_of(plan):  # and that one for a table of requests
        table = pathlib.Path(host.dir.name, "load.csv")
        requests_of = ((at, pace * work, n) for n, own in enumerate(threads) for at, work in own)
        lines = [f"{at:.6f},{work:.6f},{n}" for at, work, n in sorted(requests_of)]
        table.write_text("\n".join(["at_s,cpu_ms,thread", *lines]))
        plan, row["table_refused"] = host.plan(table, goal_ms)
    advice = row["advice_us"] = quota_of(plan)
    row["warnings"] = plan and plan["warnings"]
    if advice:
        row["promised_ms"] = plan["recommended"]["effect"]["p99_ns"]
        checks = ("as_recorded", threads), ("more_work", grown(threads, 1.1)), ("anew", draw("anew"))
        for name, load in checks:
            row["runs"].append(host.undisturbed(load, advice, pace=pace))
            row[f"{name}_ms"] = row["runs"][-1]["p99_ms"]
    row["busiest_cpus"] = busiest(threads)
    row["runs"].append(host.undisturbed(threads, int(1.15 * row["busiest_cpus"] * PERIOD_US), pace=pace))
    row["vpa_ms"] = row["runs"][-1]["p99_ms"]
    guess = advice or 2 * PERIOD_US * control["used_s"] / SECONDS
    row["cheapest_us"], row["bisected"] = host.cheapest(grown(threads, 1.15), goal_ms, guess, pace)
    row["others_cpus"] = max(run["others_cpus"] for run in row["runs"])
    return row


def recorders(host, number):
    count, use = ((1, 40), (1, 60), (1, 80), (3, 40), (3, 60), (3, 80))[number - 1]
    # A p99 needs ten pieces of work beyond it.
    threads = requests("random", count, use / count, 5, 2 * SECONDS, f"recorders {number}")
    files = {how: pathlib.Path(host.dir.name, f"{how}.parquet") for how in ("trace", "sample")}
    control = host.undisturbed(threads, None, record=files)
    run = host.undisturbed(threads, PERIOD_US // 2, pace=control["pace"])
    row = {"load": f"{number} {count} threads, {use}%", "p99_ms": run["p99_ms"], "throttled": run["throttled"]}
    row |= {"others_cpus": max(control["others_cpus"], run["others_cpus"]), "recorders": {}}
    for how, file in files.items():
        plan, why = host.plan(file, 10_000, "--today", f"quota={PERIOD_US // 2}us")
        row["recorders"][how] = {"refused": why, "intervals": plan and plan["today"]["intervals"]}
    return row


def quota_of(plan):
    best = plan and plan["recommended"]
    return best and best["limits"]["quota_ns"] // 1000


def counters(host, number):
    shape, share = counted_load(number)
    seconds = 4 * STEP + 1
    threads = requests(*shape, seconds, f"counted {number}")
    used = sum(work for own in threads for _, work in own) / 1000 / seconds
    kind, count, rate, work_ms = shape
    row = {"load": f"{number} {kind}, {count} × {rate:.0f}/s × {work_ms:.1f} ms", "settings": []}
    file = pathlib.Path(host.dir.name, "load.json")
    for times in (1.0,) if number % 3 else (1.0, 1.3):
        quota_us = int(times * share * used * PERIOD_US)
        run = host.undisturbed(threads, quota_us, read=True, tries=2)
        if times == 1.0:
            file.write_text(json.dumps(as_prometheus(run["readings"], quota_us)))
            row |= {"share": share, "readings": run["readings"]}
        plan, why = host.plan(file, 10_000, "--today", f"quota={quota_us}us")
        setting = {"quota_us": quota_us, "p99_ms": run["p99_ms"], "throttled": run["throttled"]}
        setting |= {"others_cpus": run["others_cpus"], "refused": why}
        if plan:
            setting["intervals"] = plan["today"]["intervals"]
        row["settings"].append(setting)
        if why:
            break
    return row


def as_prometheus(readings, quota_us):
    """The answer of a server that scraped these readings."""
    names = ("usage_seconds", "cfs_periods", "cfs_throttled_periods", "cfs_throttled_seconds")
    series = {f"container_cpu_{name}_total": [r[1][n] for r in readings] for n, name in enumerate(names)}
    series["container_spec_cpu_quota"] = [quota_us] * len(readings)
    series["container_spec_cpu_period"] = [PERIOD_US] * len(readings)
    result = [
        {"metric": {"__name__": name}, "values": [[1e9 + r[0], str(v)] for r, v in zip(readings, values)]}
        for name, values in series.items()
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def table(files):
    rows = [json.loads(line) for file in files for line in open(file)]
    rows.sort(key=lambda row: int(row["load"].split()[0]))
    ms = lambda value: "never" if value in (None, math.inf) else f"{value:.0f}"
    quota = lambda value: f"{value / 1000:.1f}" if value else "–"
    told = [row for row in rows if "goal_ms" in row]
    if told:
        print("| load | goal | unlimited | throttled while recorded | advice | p99 | +10% work | drawn again | cheapest | ratio | VPA | its p99 | KRR | others |")
        print("|---|" + 13 * "---:|")
    for row in told:
        both = row["advice_us"] and row["cheapest_us"]
        ratio = f"{row['advice_us'] / row['cheapest_us']:.2f}" if both else "–"
        seen = f"{100 * row['recorded_throttled']:.0f}%" if row["limited"] else ""
        seen += ", refused" if row["refused"] else ""
        p99s = [ms(row[key]) if key in row else "refused" for key in ("as_recorded_ms", "more_work_ms", "anew_ms")]
        cells = [row["load"], ms(row["goal_ms"]), ms(row["unlimited_ms"]), seen, quota(row["advice_us"]), *p99s]
        cells += [quota(row["cheapest_us"]), ratio, quota(115_000 * row["busiest_cpus"]), ms(row["vpa_ms"])]
        cells += [quota(100_000 * row["busiest_cpus"]), str(row["others_cpus"])]
        print("|", " | ".join(cells), "|")
    told = [row for row in rows if "recorders" in row]
    if told:
        print("| load | recorded by | throttled | predicted | p99 | predicted | others |")
        print("|---|---|---:|---:|---:|---:|---:|")
    for row in told:
        for how, found in row["recorders"].items():
            ranges = ["refused", ""]
            if found["intervals"]:
                shares = bounds(found, "throttled_share", 100), bounds(found, "p99_ns", 1e-6)
                ranges = [f"{low:.1f}…{high:.1f}" for low, high in shares]
            seen = f"{100 * row['throttled']:.1f}%", ms(row["p99_ms"])
            print(f"| {row['load']} | {how} | {seen[0]} | {ranges[0]}% | {seen[1]} | {ranges[1]} | {row['others_cpus']} |")
    told = [row for row in rows if "settings" in row]
    if told:
        print("| load | quota | throttled | inferred | p99 | inferred | others |")
        print("|---|---:|---:|---:|---:|---:|---:|")
    inside, widths = [[], []], []
    for row in told:
        for setting in row["settings"]:
            cells = [row["load"], quota(setting["quota_us"]), f"{100 * setting['throttled']:.1f}%"]
            if setting["refused"]:
                cells += ["refused", ms(setting["p99_ms"]), ""]
            else:
                low, high = bounds(setting, "throttled_share", 100)
                inside[0].append(low - 0.5 <= 100 * setting["throttled"] <= high + 0.5)
                mark = "" if inside[0][-1] else " !"
                cells += [f"{low:.1f}…{high:.1f}%{mark}", ms(setting["p99_ms"])]
                low, high = bounds(setting, "p99_ns", 1e-6)
                if low == math.inf:  # too few requests were inferred for a p99
                    cells.append("not told")
                else:
                    inside[1].append(low <= setting["p99_ms"] <= high)
                    widths.append(high / low)
                    cells.append(f"{low:.0f}…{high:.0f}" + ("" if inside[1][-1] else " !"))
            print("|", " | ".join([*cells, str(setting["others_cpus"])]), "|")
    if widths:
        widths.sort()
        print(f"\nthrottled share inside in {sum(inside[0])} of {len(inside[0])}, p99 in {sum(inside[1])} of {len(inside[1])};")
        print(f"width of p99's range: {widths[len(widths) // 2]:.1f} times in the median")


def bounds(setting, key, unit):
    low, high = (setting["intervals"][key][end] for end in ("low", "high"))
    return (math.inf if value is None else unit * value for value in (low, high))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("advise", "counters", "recorders", "table"))
    parser.add_argument("reveille", nargs="+", metavar="REVEILLE|FILE", help="the command; of table, files")
    parser.add_argument("--loads", help="numbers of the loads, such as 1,2 (all)")
    parser.add_argument("--pin", type=int, metavar="CPU", help="keep the load on this CPU")
    options = parser.parse_args()
    if options.what == "table":
        return table(options.reveille)
    options.reveille = options.reveille[0]
    if os.geteuid() != 0:
        sys.exit("needs root, for task groups")
    of = {"advise": (advise, len(LOADS)), "counters": (counters, 48), "recorders": (recorders, 6)}
    measure, count = of[options.what]
    numbers = [int(n) for n in options.loads.split(",")] if options.loads else range(1, count + 1)
    unknown = [n for n in numbers if not 1 <= n <= count]
    if unknown:
        sys.exit(f"--loads {unknown[0]}: {options.what} has loads 1 to {count}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    host = Host(options)
    try:
        for number in numbers:
            print(json.dumps(measure(host, number)), flush=True)
    except KeyboardInterrupt:
        return 130
    finally:
        host.close()


if __name__ == "__main__":
    sys.exit(main())
