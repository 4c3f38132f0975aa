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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

_FILES = {".toml", ".xml", ".json", ".c"}

_Path = str | os.PathLike[str]
_Progress = Callable[[int, int, float], None]


class Error(Exception):
    """What the command said, with its exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message.strip())
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.args[0])


def _program(command: str | None) -> str:
    if command is None:
        with contextlib.suppress(ImportError):
            from reveille import program

            return str(program())
    return command or "reveille"


def _die_with_worker() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _run(command: str | None, arguments: Iterable[Any], accepted: tuple[int, ...] = (0,), **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [_program(command), *map(str, arguments)],
        capture_output=True,
        text=True,
        preexec_fn=_die_with_worker,
        **options,
    )
    if done.returncode not in accepted:
        raise Error(done.returncode, done.stderr)
    return done.stdout


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


def _part(files: dict[str, bytes], sweep: str, shard: str, command: str | None, jobs: int) -> tuple[bytes, int]:
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


def _tell(done: int, cells: int, begun: float) -> None:
    left = (time.monotonic() - begun) * (cells - done) / max(done, 1)
    print(f"{done} of {cells} cells, about {left:.0f} s left", file=sys.stderr, flush=True)


def sweep(
    spec: _Path,
    output: _Path,
    *,
    command: str | None = None,
    parts: int | None = None,
    jobs: int = 1,
    retries: int = 3,
    progress: _Progress | None = _tell,
) -> dict[str, Any]:
    """Run a sweep on the cluster that ``ray.init`` has joined, and write ``output``.

    ``parts`` tasks of ``jobs`` CPUs each share the points; by default there are eight for each that
    fits on the cluster at a time. Parts are kept in ``output.parts/`` as they come: any Parquet
    reader can look at them, and the same call goes on where it ended. A task whose worker is lost
    runs again, ``retries`` times at most. ``progress(done, cells, begun)`` is told after each part.
    Returns the summary of ``reveille merge --json``.
    """
    spec, output = pathlib.Path(spec), pathlib.Path(output)
    plan = json.loads(_run(command, ["sweep", spec, "--dry-run", "--json"]))
    resources: Callable[[], dict[str, float]] = ray.cluster_resources
    places = max(int(resources().get("CPU", 1)) // jobs, 1)
    parts = max(min(parts or 8 * places, plan["points"]), 1)
    kept = pathlib.Path(f"{output}.parts") / f"{plan['sweep']}-{parts}"
    kept.mkdir(parents=True, exist_ok=True)
    files = ray.put(_bundle(spec))
    task = ray.remote(_part).options(num_cpus=jobs, max_retries=retries)
    path = {f"{i}/{parts}": kept / f"{i}.parquet" for i in range(1, parts + 1)}
    waiting = {
        task.remote(files, plan["sweep"], shard, command, jobs): shard
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
    merged = _run(command, ["merge", output, *path.values(), "--force", "--json"], (0, 1))
    shutil.rmtree(kept.parent)
    summary: dict[str, Any] = json.loads(merged)
    return summary


def _plan(name: str, content: bytes, arguments: list[str], command: str | None) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / name).write_bytes(content)
        return json.loads(_run(command, ["plan", name, *arguments, "--json"], cwd=directory))


def plan(
    recordings: Iterable[_Path],
    *arguments: Any,
    command: str | None = None,
    jobs: int = 1,
    retries: int = 3,
) -> dict[str, Any]:
    """``reveille plan RECORDING ARGUMENTS --json`` for each recording of a fleet, a task for each.

    ``plan(paths, "--goal", "p99=20ms")`` returns, by path, the plan, or the :class:`Error` of a
    recording that has none.
    """
    task = ray.remote(_plan).options(num_cpus=jobs, max_retries=retries)
    texts = [*map(str, arguments), "--jobs", str(jobs)]
    paths = [pathlib.Path(path) for path in recordings]
    tasks = {str(path): task.remote(path.name, path.read_bytes(), texts, command) for path in paths}
    plans: dict[str, Any] = {}
    for name, ref in tasks.items():
        try:
            plans[name] = ray.get(ref)
        except Error as error:
            plans[name] = error
    return plans
