"""Sweeps and plans as tasks on a Ray cluster that is there already.

Every worker needs the same build of Reveille. Files that a spec names travel with the task. A task
whose worker is lost runs again, on the same node from the journal of its finished cells; the table
has the bytes of one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import IO, Any

import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

from reveille._errors import Error, InputError
from reveille._results import Plan, Sweep
from reveille._run import _call

_FILES = {".toml", ".xml", ".json", ".c"}

_Path = str | os.PathLike[str]
_Progress = Callable[[int, int, float], None]


def _die_with_worker() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _bundle(spec: pathlib.Path) -> dict[str, bytes]:
    """The spec, as spec.toml, and the files beside it that it names, by path."""
    text = spec.read_bytes()
    files = {"spec.toml": text}
    for quoted in text.decode().replace("'", '"').split('"')[1::2]:
        path = quoted.split(",")[0].strip()
        beside = spec.parent / path
        if pathlib.PurePath(path).suffix in _FILES and not os.path.isabs(path) and beside.is_file():
            files[path] = beside.read_bytes()
    return files


def _locked(path: str) -> IO[str]:
    """The file, locked. A cancelled task's command may not have ended yet: it holds the lock, too."""
    while True:  # Its last holder removes it, and its directory.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            lock = open(path, "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return lock
            lock.close()


def _part(files: dict[str, bytes], sweep: str, shard: str, jobs: int) -> tuple[bytes, int]:
    """The bytes of one part. What is finished survives the worker, not the node."""
    scratch = pathlib.Path(tempfile.gettempdir()) / f"reveille-{os.getuid()}-{sweep}"
    own = scratch / shard.replace("/", "of")
    root = own / "a" / "b" / "c"  # Room for paths that begin with ../
    with _locked(f"{own}.lock") as lock:
        root.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            target = root / path
            if not target.resolve().is_relative_to(own.resolve()):
                raise InputError(f"{path} lies too far above the spec", fix="move the spec closer")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        table = own / "part.parquet"
        arguments = ["sweep", "spec.toml", "--json", "--shard", shard, "--jobs", str(jobs), "-o", str(table)]
        held = {"pass_fds": (lock.fileno(),), "preexec_fn": _die_with_worker}
        summary = json.loads(_call(arguments, (0, 1), cwd=root, **held))
        content = table.read_bytes()
        shutil.rmtree(own)
        os.unlink(lock.name)
    with contextlib.suppress(OSError):
        scratch.rmdir()
    return content, summary["cells"]


def _tell(done: int, cells: int, begun: float) -> None:
    left = (time.monotonic() - begun) * (cells - done) / max(done, 1)
    print(f"{done} of {cells} cells, about {left:.0f} s left", file=sys.stderr, flush=True)


def sweep(
    spec: _Path,
    output: _Path,
    *,
    parts: int | None = None,
    jobs: int = 1,
    retries: int = 3,
    progress: _Progress | None = _tell,
) -> Sweep:
    """Run a sweep on the cluster that ``ray.init`` has joined, and write ``output``.

    ``parts`` tasks of ``jobs`` CPUs each share the points; by default there are eight for each that
    fits on the cluster at a time. Parts are kept in ``output.parts/`` as they come: any Parquet
    reader can look at them, and the same call goes on where it ended. A task whose worker is lost
    runs again, ``retries`` times at most. ``progress(done, cells, begun)`` is told after each part.
    """
    spec, output = pathlib.Path(spec), pathlib.Path(output)
    plan = json.loads(_call(["sweep", str(spec), "--dry-run", "--json"]))
    resources: Callable[[], dict[str, float]] = ray.cluster_resources
    places = max(int(resources().get("CPU", 1)) // jobs, 1)
    parts = max(min(parts or 8 * places, plan["points"]), 1)
    kept = pathlib.Path(f"{output}.parts") / f"{plan['sweep']}-{parts}"
    kept.mkdir(parents=True, exist_ok=True)
    files = ray.put(_bundle(spec))
    task = ray.remote(_part).options(num_cpus=jobs, max_retries=retries)
    path = {f"{i}/{parts}": kept / f"{i}.parquet" for i in range(1, parts + 1)}
    waiting = {
        task.remote(files, plan["sweep"], shard, jobs): shard
        for shard, at in path.items()
        if not at.exists()
    }
    done = plan["cells"] * (parts - len(waiting)) // parts
    begun = time.monotonic()
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            content, cells = ray.get(ready[0])
            at = path[waiting.pop(ready[0])]
            at.with_suffix(".tmp").write_bytes(content)
            at.with_suffix(".tmp").rename(at)
            done += cells
            if progress:
                progress(done if waiting else plan["cells"], plan["cells"], begun)
    except BaseException:
        for left in waiting:
            ray.cancel(left)
        raise
    merge = ["merge", "--force", "--json", str(output), *map(str, path.values())]
    summary = json.loads(_call(merge, (0, 1)))
    shutil.rmtree(kept.parent)
    return Sweep(summary)


def _plan(name: str, content: bytes, arguments: list[str]) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / name).write_bytes(content)
        return json.loads(_call(["plan", name, *arguments, "--json"], cwd=directory, preexec_fn=_die_with_worker))


def plan(
    recordings: Iterable[_Path],
    *arguments: Any,
    jobs: int = 1,
    retries: int = 3,
) -> dict[str, Plan | Error]:
    """``reveille plan RECORDING ARGUMENTS --json`` for each recording of a fleet, a task for each.

    ``plan(paths, "--goal", "p99=20ms")`` returns, by path, the plan, or the :class:`reveille.Error`
    of a recording that has none.
    """
    task = ray.remote(_plan).options(num_cpus=jobs, max_retries=retries)
    texts = [*map(str, arguments), "--jobs", str(jobs)]
    paths = [pathlib.Path(path) for path in recordings]
    tasks = {str(path): task.remote(path.name, path.read_bytes(), texts) for path in paths}
    plans: dict[str, Plan | Error] = {}
    for name, ref in tasks.items():
        try:
            plans[name] = Plan(ray.get(ref))
        except Error as error:
            plans[name] = error
    return plans
