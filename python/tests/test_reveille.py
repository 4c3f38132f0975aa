"""The installed package, used as a user would."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import reveille

SMALL = dict(
    machine="quad-1s4c",
    workload="tcp_rr",
    load=[1, 4],
    base="v6.2",
    repeats=2,
    warmup="2ms",
    duration="2ms",
)
# What NumPy has for an integer.
FOUR = type("int64", (), {"__index__": lambda _: 4})()
# Minutes, if nothing ends it.
LONG = dict(SMALL, machine="spr-2s56c", load=448, repeats=1000, warmup="1s")
REQUESTS = Path(__file__).parents[2] / "docs/examples/requests.csv"
HEAD = """#include <reveille.h>
REVEILLE_POLICY(1);
struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
    struct policy_task *p, struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j)
{ struct policy_pick pick = { 0 }; %s return pick; }
"""


def policy(directory, body):
    path = directory / "idea.c"
    path.write_text(HEAD % body)
    return path


def test_a_comparison_is_what_the_command_prints():
    ours = reveille.compare(**SMALL, with_="-TTWU_QUEUE")
    command = [reveille.program(), "compare", "--machine=quad-1s4c", "--workload=tcp_rr"]
    command += ["--load=1,4", "--base=v6.2", "--repeats=2", "--warmup=2ms", "--duration=2ms"]
    printed = subprocess.check_output([*command, "--with=-TTWU_QUEUE", "--json"])
    assert ours.to_dict() == json.loads(printed)
    assert ours.version == reveille.__version__
    assert [row["load"] for row in ours.rows] == [1, 4]
    assert ours.base == "v6.2" and not ours.partial
    one = reveille.compare(**dict(SMALL, load=FOUR), with_="-TTWU_QUEUE")
    assert [row["load"] for row in one.rows] == [4]
    with pytest.raises(AttributeError):
        ours.nothing


def test_a_study_and_progress():
    told = []
    study = reveille.study("first-idle", repeats=1, progress=lambda *now: told.append(now))
    assert study.study == "first-idle" and study.rows
    assert told == sorted(told)


def test_errors_have_a_place(tmp_path):
    with pytest.raises(reveille.InputError) as wrong:
        reveille.compare(**dict(SMALL, machine="quat-1s4c"))
    assert wrong.value.option == "machine" and "quad-1s4c" in str(wrong.value)
    with pytest.raises(ValueError, match="did you mean"):
        reveille.compare(**SMALL, with_="+SIS_SHROT")
    study = tmp_path / "study.toml"
    study.write_text('name = "x"\nabout = "y"\nmachin = "quad-1s4c"\n')
    with pytest.raises(reveille.InputError) as wrong:
        reveille.study(study)
    assert (wrong.value.file, wrong.value.line, wrong.value.key) == (str(study), 3, "machin")
    assert "did you mean `machine`" in wrong.value.fix
    table = tmp_path / "requests.csv"
    table.write_text("at_ms,cpu_us\n0,1\nx,2\n")
    with pytest.raises(reveille.InputError) as wrong:
        reveille.Recording(table)
    assert wrong.value.line == 3
    missing = str(tmp_path / "missing.csv")
    with pytest.raises(reveille.InputError) as wrong:
        reveille.Recording(missing)
    assert (wrong.value.file, wrong.value.line) == (missing, None)
    with pytest.raises(reveille.InputError) as wrong:
        reveille.plan(missing, "p99=20ms")
    assert wrong.value.file == missing
    with pytest.raises(reveille.InputError) as wrong:
        reveille.plan(table, "p99=20ms", machine="quad-1s4c")
    assert (wrong.value.file, wrong.value.line) == (str(table), 3)


def test_an_integer_out_of_range_is_named(tmp_path):
    idea = policy(tmp_path, "")
    for function, name, value in [
        (lambda **more: reveille.compare(**dict(SMALL, **more)), "repeats", -1),
        (lambda **more: reveille.compare(**dict(SMALL, **more)), "load", -1),
        (lambda **more: reveille.compare(**dict(SMALL, policy=idea, **more)), "seed", -1),
        (lambda **more: reveille.study("first-idle", **more), "seed", 2**64),
        (lambda **more: reveille.study("first-idle", **more), "jobs", -1),
        (reveille.score, "stage", -1),
        (reveille.score, "artifact_bytes", -1),
        (lambda **more: reveille.plan(REQUESTS, "p99=20ms", **more), "phases", -1),
    ]:
        with pytest.raises(reveille.InputError) as wrong:
            function(**{name: value})
        assert wrong.value.option == name and wrong.value.fix, str(wrong.value)


def test_a_policy_file_cannot_end_the_interpreter(tmp_path):
    good = policy(tmp_path, "pick = policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);")
    rows = reveille.compare(**SMALL, policy=good).rows
    assert all(row["change_pct"] == 0 for row in rows)
    bad = policy(tmp_path, "pick.cpu = *(volatile u32 *)0;")
    with pytest.raises(reveille.PolicyError, match="SIGSEGV") as ended:
        reveille.compare(**SMALL, policy=bad)
    assert ended.value.fix
    score = reveille.score(bad, stage=1)
    assert (score.combined_score, score.status) == (0, "policy_failed")
    assert "SIGSEGV" in score.artifacts["error"]
    broken = policy(tmp_path, "int")
    assert reveille.score(broken).status == "not_compiled"


def test_a_score_of_edits():
    score = reveille.score(stage=1)
    assert score.combined_score == 1 and score.passed
    limited = reveille.score("+SIS_SHORT", time_limit="1us")
    assert limited.status == "time_limit" and limited.not_run
    with pytest.raises(reveille.InputError, match="stages"):
        reveille.score(stage=3)


def test_a_plan():
    plan = reveille.plan(REQUESTS, "p99=50ms", machine="quad-1s4c", phases=2, jobs=1)
    assert plan.recommended["limits"]["quota_ns"] > 0
    assert plan.table.num_rows == len(plan.alternatives)


def test_no_command_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("REVEILLE", "/bin/echo")
    with pytest.raises(reveille.Error, match="and this package"):
        reveille.plan(REQUESTS, "p99=50ms")


def test_arrow_readers_take_results_and_recordings():
    result = reveille.compare(**SMALL, with_="-TTWU_QUEUE")
    recording = reveille.Recording(REQUESTS)
    assert len(recording.demands) == 1726 and recording.span_ns > 0
    assert recording.demands.column_names == ["at_ns", "cpu_ns", "thread", "done_ns"]
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(result)
    assert table.column("load").to_pylist() == [1, 4]
    assert table.column("baseline_mean").to_pylist() == [r["baseline"]["mean"] for r in result.rows]
    assert table.schema.field("significant").type == pyarrow.bool_()
    assert table.schema.field("verdict").type == pyarrow.null()
    demands = pyarrow.table(recording.demands)
    assert demands.schema.field("cpu_ns").type == pyarrow.uint64()
    assert demands.num_rows == 1726 and demands.column("done_ns").null_count == 1726


def test_polars_pandas_and_duckdb(tmp_path):
    result = reveille.compare(**SMALL, with_="-TTWU_QUEUE")
    demands = reveille.Recording(REQUESTS).demands
    total = None
    try:
        import polars

        assert polars.DataFrame(result)["load"].to_list() == [1, 4]
        total = polars.DataFrame(demands)["cpu_ns"].sum()
        assert total > 0
    except ImportError:
        pass
    try:
        import duckdb
        import pyarrow

        told = duckdb.sql("select sum(cpu_ns) from demands").fetchall()[0][0]
        assert total is None or told == total
    except ImportError:
        pass
    try:
        import pandas
        import pyarrow

        frame = pandas.DataFrame.from_arrow(result) if hasattr(pandas.DataFrame, "from_arrow") else None
        frame = pyarrow.table(result).to_pandas() if frame is None else frame
        assert list(frame["load"]) == [1, 4]
    except ImportError:
        pass


def test_other_threads_run_meanwhile():
    counted = 0
    stop = threading.Event()

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    reveille.score(stage=1, jobs=1)
    took = time.monotonic() - began
    stop.set()
    thread.join()
    assert counted > 5 * took, f"{counted} steps of 5 ms in {took} s"


@pytest.mark.parametrize("with_policy", [False, True])
def test_ctrl_c_ends_a_run(tmp_path, with_policy):
    more = {}
    if with_policy:
        body = "pick = policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);"
        more = {"policy": str(policy(tmp_path, body))}
    script = f"""
import reveille
print("ready", flush=True)
try:
    reveille.compare(**{LONG!r}, **{more!r})
except KeyboardInterrupt:
    print("interrupted")
"""
    # Python heeds SIGINT only if it is not ignored at the start, as it is in background jobs.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + script
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    time.sleep(2)
    began = time.monotonic()
    os.kill(run.pid, signal.SIGINT)
    out, _ = run.communicate(timeout=30)
    assert out == "interrupted\n" and run.returncode == 0
    assert time.monotonic() - began < 5
