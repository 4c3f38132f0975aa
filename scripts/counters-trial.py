#!/usr/bin/env python3
"""Holds what `reveille plan` infers from counters of throttling against loads that are known.

The loads come from a simulation of its own: workers that share a queue, in steps of 1 ms, under a
quota without slices and ticks. Half of them are Poisson loads, half have a long job every 20 to 60 s as
well. Prints for each load and quota the true p99 and the inferred range: counters-trial.py BINARY [LOADS]
"""

import collections
import json
import random
import subprocess
import sys
import tempfile

STEP_MS, PERIOD_MS, CPUS = 15_000, 100, 4
TIMES = (1, 1.3, 2)


def load(rare, seed, length_ms):
    """Requests (arrival, CPU time), CPUs used, and the number of workers."""
    draw = random.Random(seed)
    rate, mean = draw.choice([8, 15, 25, 40]), draw.choice([3, 6, 10])
    requests, at = [], 0.0
    while (at := at + draw.expovariate(rate / 1000)) < length_ms:
        requests.append((at, draw.expovariate(1 / mean)))
    used = rate * mean / 1000
    if rare:
        every = draw.randint(20, 60) * 1000
        for begin in range(every // 2, length_ms, every):
            requests.append((begin + 3000 * draw.random(), draw.uniform(150, 400)))
        used += 275 / every
    return sorted(requests), used, draw.choice([1, 2, 4])


def run(requests, workers, quota, length_ms):
    """True p99 and, every 15 s, CPU seconds, periods, throttled periods and throttled seconds."""
    waiting, running, took = collections.deque(), [], []
    bank, used, lost, periods, throttled, active, out = quota, 0.0, 0.0, 0, 0, False, False
    readings, coming = [(0, 0, 0, 0)], 0
    for now in range(length_ms):
        if now % PERIOD_MS == 37:
            periods, throttled = periods + active, throttled + (active and out)
            bank, active, out = min(bank, 0) + quota, bool(running or waiting), False
        while coming < len(requests) and requests[coming][0] <= now:
            waiting.append(list(requests[coming]))
            coming += 1
        while waiting and len(running) < workers:
            running.append(waiting.popleft())
        active = active or bool(running)
        if running and bank <= 0:
            out = True
            lost += 0.001 * min(len(running), CPUS)
        elif running:
            random.shuffle(running)
            for request in running[:CPUS]:
                ran = min(1.0, request[1], max(bank, 0))
                request[1], bank, used = request[1] - ran, bank - ran, used + ran
                if request[1] <= 1e-9:
                    took.append(now + 1 - request[0])
            running = [request for request in running if request[1] > 1e-9]
        if now % STEP_MS == STEP_MS - 1:
            readings.append((used / 1000, periods, throttled, lost))
    return sorted(took)[int(0.99 * len(took))], readings


def answer(readings, quota):
    """As Prometheus gives them."""
    columns = list(zip(*readings)) + [[1000 * quota] * len(readings), [1e5] * len(readings)]
    names = ("cpu_usage_seconds_total", "cpu_cfs_periods_total", "cpu_cfs_throttled_periods_total",
             "cpu_cfs_throttled_seconds_total", "spec_cpu_quota", "spec_cpu_period")
    result = [{"metric": {"__name__": f"container_{name}"},
               "values": [[1000 + 15 * n, str(value)] for n, value in enumerate(column)]}
              for name, column in zip(names, columns)]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def main(binary, loads=6):
    for rare in (True, False):
        held = collections.Counter()
        for seed in range(1, loads + 1):
            length_ms = (30 + 5 * seed) * 60_000
            random.seed(seed)
            requests, used, workers = load(rare, 7 * seed + rare, length_ms)
            quota = round(PERIOD_MS * used * random.choice([1.6, 2.0, 2.6]), 1)
            p99, readings = run(requests, workers, quota, length_ms)
            line = f"{'rare jobs' if rare else 'steady':9} {seed}: {used:.2f} CPUs, {quota} ms"
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(answer(readings, quota), file)
                file.flush()
                for times in TIMES:
                    true = p99 if times == 1 else run(requests, workers, quota * times, length_ms)[0]
                    plan = subprocess.run(
                        [binary, "plan", file.name, "--goal", "p99=500ms", "--cpus", str(CPUS), "--json",
                         "--today", f"quota={1000 * quota * times:.0f}us"], capture_output=True, text=True)
                    if plan.returncode:
                        held["refused"] += 1
                        continue
                    p99s = json.loads(plan.stdout)["today"]["intervals"]["p99_ns"]
                    low, high = (p99s[end] and p99s[end] / 1e6 for end in ("low", "high"))
                    where = ("too few" if low is None else "in" if low <= true <= high else
                             "above" if true > high else "below")
                    held[where] += 1
                    line += f"; x{times}: {true:.0f} [{low or 0:.0f}…{high or 0:.0f}] {where}"
            print(line, flush=True)
        print(dict(held), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
