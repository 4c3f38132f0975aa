"""A sweep on a real local cluster: several worker processes, one of them killed mid-way.

Run by scripts/test-ray.sh; skipped where Ray is not installed.
"""

import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

ray = pytest.importorskip("ray")

import reveille.ray  # noqa: E402

COMMAND = reveille.program()
EXAMPLES = pathlib.Path(__file__).parents[2] / "docs/examples"
SPEC = """
name = "ray"
machines = ["quad-1s4c", "zen4-7950x"]
bases = ["v6.2", "v6.12"]
edits = ["+SIS_SHORT", "idea.c"]
seeds = [1, 2, 3]
repeats = 2
warmup = "5ms"
duration = "5ms"
[[workload]]
name = "context_switch1"
loads = ["50%", "100%", "200%"]
[[workload]]
name = "tcp_rr"
loads = [1, 8]
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    policy = (EXAMPLES / "policies/power_of_two.c").read_text()
    (tmp_path / "idea.c").write_text(policy)
    return tmp_path / "spec.toml"


def workers():
    """Worker processes that run a part."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            title = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::_part"):
            found.append(int(process.name))
    return found


def test_a_lost_worker_changes_no_byte(spec, tmp_path):
    whole = tmp_path / "whole.parquet"
    subprocess.run([COMMAND, "sweep", spec, "-o", whole], check=True, capture_output=True)
    killed, told = [], []

    def kill():
        while not killed:
            for worker in workers()[:1]:
                time.sleep(0.3)
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    output = tmp_path / "ray.parquet"
    summary = reveille.ray.sweep(spec, output, parts=6,
                                 progress=lambda done, cells, begun: told.append((done, cells)))
    assert killed, "no worker was killed"
    assert output.read_bytes() == whole.read_bytes()
    assert summary.cells == 180 and told[-1] == (180, 180) and len(told) == 6
    assert not list(tmp_path.glob("*.parts"))


def test_the_same_call_goes_on_where_it_ended(spec, tmp_path):
    spec.write_text(SPEC.replace("[1, 2, 3]", "[1]").replace(', "idea.c"', ""))
    whole, output, told = tmp_path / "whole.parquet", tmp_path / "ray.parquet", []
    subprocess.run([COMMAND, "sweep", spec, "-o", whole], check=True, capture_output=True)

    def stop(done, cells, begun):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reveille.ray.sweep(spec, output, parts=4, progress=stop)
    assert not output.exists()
    reveille.ray.sweep(spec, output, parts=4, progress=lambda *args: told.append(args))
    assert len(told) == 3
    assert output.read_bytes() == whole.read_bytes()


def test_a_mistake_is_an_error_with_its_place(spec, tmp_path):
    spec.write_text(SPEC.replace("tcp_rr", "tcp_r"))
    with pytest.raises(reveille.InputError, match="no workload is called `tcp_r`") as caught:
        reveille.ray.sweep(spec, tmp_path / "out.parquet")
    assert (caught.value.line, caught.value.key) == (14, "name")


def test_a_fleet_is_planned(tmp_path):
    recording = tmp_path / "one.parquet"
    requests = EXAMPLES / "requests.csv"
    subprocess.run([COMMAND, "import", requests, "-o", recording], check=True, capture_output=True)
    broken = tmp_path / "two.parquet"
    broken.write_bytes(b"nothing")
    plans = reveille.ray.plan([recording, broken], "--goal", "p50=200ms", "--machine", "quad-1s4c")
    assert plans[str(recording)].recommended
    assert isinstance(plans[str(broken)], reveille.InputError)
