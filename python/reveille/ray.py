"""Sweeps and plans as tasks on a Ray cluster that is there already.

Every worker needs the same build of the ``reveille`` command. Files that a spec names travel with
the task. A task whose worker is lost runs again, on the same node from the journal of its finished
cells; the table has the bytes of one process, as ``reveille merge`` makes sure.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

import ray

_FILES = {".toml", ".xml", ".json", ".c"}


class Error(Exception):
    """What ``reveille`` said, with its exit code."""

    def __init__(self, code: int, message: str):
        super().__init__(message.strip())
        self.code = code

    def __reduce__(self):
        return type(self), (self.code, self.args[0])


def _die_with_worker():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _run(command, arguments, accepted=(0,), **options) -> str:
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True,
                          preexec_fn=_die_with_worker, **options)
    if done.returncode not in accepted:
        raise Error(done.returncode, done.stderr)
    return done.stdout


def _named(value):
    """Every path in a spec, edits behind policy files taken off."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {path for item in value for path in _named(item)}
    path = value.split(",")[0].strip() if isinstance(value, str) else ""
    return {path} if pathlib.PurePath(path).suffix in _FILES else set()


def _bundle(spec: pathlib.Path) -> dict[str, bytes]:
    """The spec as spec.toml, and by path what it names."""
    text = spec.read_bytes()
    files = {"spec.toml": text}
    for path in sorted(_named(tomllib.loads(text.decode()))):
        if not os.path.isabs(path):
            files[path] = (spec.parent / path).read_bytes()
    return files


@ray.remote
def _part(files, sweep, shard, command, jobs):
    """The bytes of one part. What is finished survives the worker, not the node."""
    scratch = pathlib.Path(tempfile.gettempdir()) / f"reveille-{os.getuid()}-{sweep}"
    own = scratch / shard.replace("/", "of")
    root = own / "a" / "b" / "c"  # Room for paths that begin with ../
    root.mkdir(parents=True, exist_ok=True)
    with open(f"{own}.lock", "w") as lock:
        # A cancelled task's command may not have ended yet: it holds the lock, too.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path, content in files.items():
            target = root / path
            if not target.resolve().is_relative_to(own.resolve()):
                raise Error(2, f"{path}: lies too far above the spec; move the spec beside it")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        table = own / "part.parquet"
        arguments = ["sweep", "spec.toml", "-o", table, "--shard", shard, "--jobs", jobs, "--json"]
        summary = json.loads(_run(command, arguments, (0, 1), cwd=root, pass_fds=(lock.fileno(),)))
        content = table.read_bytes()
        shutil.rmtree(own)
        os.unlink(lock.name)
    with contextlib.suppress(OSError):
        scratch.rmdir()
    return content, summary["cells"]


def _tell(done, cells, begun):
    left = (time.monotonic() - begun) * (cells - done) / max(done, 1)
    print(f"{done} of {cells} cells, about {left:.0f} s left", file=sys.stderr, flush=True)


def sweep(spec, output, *, command="reveille", parts=None, jobs=1, retries=3, progress=_tell) -> dict:
    """Run a sweep on the cluster that ``ray.init`` has joined, and write ``output``.

    ``parts`` tasks of ``jobs`` CPUs each share the points; eight for each place by default. Parts
    are kept in ``output.parts/`` as they come: any Parquet reader can look at them, and the same call
    goes on where it ended. A task whose worker is lost runs again, ``retries`` times at most.
    ``progress(done, cells, begun)`` is told after each part. Returns the summary of ``--json``.
    """
    spec, output = pathlib.Path(spec), pathlib.Path(output)
    plan = json.loads(_run(command, ["sweep", spec, "--dry-run", "--json"]))
    places = max(int(ray.cluster_resources().get("CPU", 1)) // jobs, 1)
    parts = max(min(parts or 8 * places, plan["points"]), 1)
    kept = pathlib.Path(f"{output}.parts") / f"{plan['sweep']}-{parts}"
    kept.mkdir(parents=True, exist_ok=True)
    files = ray.put(_bundle(spec))
    task = _part.options(num_cpus=jobs, max_retries=retries)
    path = {f"{i}/{parts}": kept / f"{i}.parquet" for i in range(1, parts + 1)}
    waiting = {task.remote(files, plan["sweep"], shard, command, jobs): shard
               for shard, at in path.items() if not at.exists()}
    share = plan["cells"] / parts
    done, begun = share * (parts - len(waiting)), time.monotonic()
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            content, cells = ray.get(ready[0])
            at = path[waiting.pop(ready[0])]
            at.with_suffix(".tmp").write_bytes(content)
            at.with_suffix(".tmp").rename(at)
            done += cells
            if progress:
                progress(round(done), plan["cells"], begun)
    except BaseException:
        for left in waiting:
            ray.cancel(left)
        raise
    merge = ["merge", output, *path.values(), "--force", "--json"]
    summary = json.loads(_run(command, merge, (0, 1)))
    shutil.rmtree(kept.parent)
    return summary


@ray.remote
def _plan(name, content, arguments, command):
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / name).write_bytes(content)
        return json.loads(_run(command, ["plan", name, *arguments, "--json"], cwd=directory))


def plan(recordings, *arguments, command="reveille", jobs=1, retries=3) -> dict:
    """``reveille plan RECORDING ARGUMENTS --json`` for each recording of a fleet.

    ``plan(paths, "--goal", "p99=20ms")`` returns, by path, the plan or the :class:`Error` of a
    recording that has none.
    """
    task = _plan.options(num_cpus=jobs, max_retries=retries)
    arguments = [*map(str, arguments), "--jobs", str(jobs)]
    tasks = {str(path): task.remote(pathlib.Path(path).name, pathlib.Path(path).read_bytes(), arguments, command)
             for path in recordings}
    plans = {}
    for path, ref in tasks.items():
        try:
            plans[path] = ray.get(ref)
        except Error as error:
            plans[path] = error
    return plans
