"""The commands as functions.

Studies, comparisons and scores of edits run in this process. Policy files, which may crash, plans
and recordings run in a process of the `reveille` command.
"""

from __future__ import annotations

import json
import operator
import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from reveille import _reveille
from reveille._errors import Error, InputError, PolicyError
from reveille._results import Comparison, Plan, Score, Sweep

if TYPE_CHECKING:
    from reveille._reveille import Progress, Recording

    Texts = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

#: Exit codes of `reveille score` with a result.
_SCORED = (0, 3, 4, 5, 6)


def program() -> str:
    """Path of the `reveille` command: $REVEILLE, the one of this package, or one on PATH.

    Raises `Error` if there is none of this version.
    """
    own = Path(sysconfig.get_path("scripts")) / "reveille"
    found = os.environ.get("REVEILLE") or (str(own) if own.exists() else shutil.which("reveille"))
    fix = "install the wheel of `make wheel`, or set REVEILLE to the command's path"
    if found is None:
        raise Error("policy files and plans run in the reveille command, which is not here", fix=fix)
    try:
        shown = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Error(f"{found} cannot be run: {error}", fix=fix) from None
    if shown.stdout.split()[-1:] != [_reveille.__version__]:
        problem = f"{found} is {shown.stdout.strip()}, and this package {_reveille.__version__}"
        raise Error(problem, fix=fix)
    return found


def _call(arguments: list[str], codes: tuple[int, ...] = (0,), **options: Any) -> str:
    """Standard output of the command. Ctrl-C ends it as on a terminal. Options are those of Popen."""
    command = [program(), *arguments]
    environment = {**os.environ, "REVEILLE_ERRORS": "json"}
    pipe = subprocess.PIPE
    options |= {"stdout": pipe, "stderr": pipe, "env": environment}
    with subprocess.Popen(command, text=True, **options) as child:
        try:
            out, errors = child.communicate()
        except BaseException:
            child.send_signal(signal.SIGINT)
            try:
                child.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
    if child.returncode == 0 or (child.returncode in codes and out):
        return str(out)
    if child.returncode in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    raise _error(errors, child.returncode)


def _error(errors: str, code: int) -> Error:
    """The error that the command printed last."""
    for line in reversed(errors.splitlines()):
        if line.startswith('{"message"'):
            told = json.loads(line)
            kinds = {"input": InputError, "policy": PolicyError}
            return kinds.get(told.pop("kind"), Error)(told.pop("message"), **told)
    return (InputError if code == 2 else Error)(errors.strip() or f"reveille ended with {code}")


def _texts(value: Texts | None) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    return [os.fspath(item) for item in value]


def _options(**values: Any) -> list[str]:
    """Keyword arguments as the command takes them."""
    arguments = []
    for name, value in values.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            items = value if isinstance(value, (list, tuple)) else [value]
            arguments += [f"{option}={os.fspath(i) if isinstance(i, os.PathLike) else i}" for i in items]
    return arguments


def _loads(load: SupportsIndex | str | Iterable[SupportsIndex]) -> str:
    if isinstance(load, str):
        return load
    # An integer of NumPy, too.
    return ",".join(map(str, load)) if isinstance(load, Iterable) else str(operator.index(load))


#: Integers of the native module: their bits, and what to give.
_INTEGERS = {
    "repeats": (32, "give a whole number from 1 to 1000"),
    "seed": (64, f"give a whole number from 0 to {2**64 - 1}"),
    "stage": (8, "there are stages 1 and 2"),
    "artifact_bytes": (64, "give a whole number, 0 or more"),
    "jobs": (64, "give a whole number, 1 or more"),
}


def _native(function: Callable[..., str], *arguments: str, **options: Any) -> str:
    """Calls the native module, whose OverflowError does not name the argument."""
    for name, (bits, fix) in _INTEGERS.items():
        value = options.get(name)
        if isinstance(value, SupportsIndex) and not 0 <= operator.index(value) < 1 << bits:
            raise InputError(f"`{name}`: {value} is out of range", option=name, fix=fix)
    return function(*arguments, **options)


def compare(
    *,
    machine: str,
    workload: str,
    load: SupportsIndex | str | Iterable[SupportsIndex],
    base: str,
    with_: Texts | None = None,
    policy: Texts | None = None,
    param: dict[str, object] | None = None,
    metric: Texts | None = None,
    group: Texts | None = None,
    slice: str | None = None,
    repeats: int = 5,
    seed: int = 1,
    warmup: str | None = None,
    duration: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """`reveille compare`: policies on a machine, a workload and loads.

    `progress(done, all)` is called now and then, unless there is a policy file.
    """
    params = [f"{name}={value}" for name, value in (param or {}).items()]
    common: dict[str, Any] = {
        "machine": os.fspath(machine),
        "workload": os.fspath(workload),
        "load": _loads(load),
        "base": base,
        "param": params,
        "metric": _texts(metric),
        "group": _texts(group),
        "slice": slice,
        "repeats": repeats,
        "seed": seed,
        "warmup": warmup,
        "duration": duration,
        "jobs": jobs,
    }
    files = _texts(policy)
    if files:
        text = _call(["compare", "--json", *_options(**common, with_=_texts(with_), policy=files)])
    else:
        text = _native(_reveille.compare, **common, variants=_texts(with_), progress=progress)
    return Comparison(json.loads(text))


def study(
    spec: str | os.PathLike[str],
    *,
    repeats: int | None = None,
    seed: int | None = None,
    machine: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """`reveille study`: a shipped study by name, or a file."""
    options = {"repeats": repeats, "seed": seed, "machine": machine, "jobs": jobs}
    text = _native(_reveille.study, os.fspath(spec), **options, progress=progress)
    return Comparison(json.loads(text))


def score(
    candidate: str | os.PathLike[str] = "",
    *,
    base: str | None = None,
    suite: str | os.PathLike[str] = "default",
    holdout: bool = False,
    stage: int | None = None,
    time_limit: str | None = None,
    artifact_bytes: int = 8192,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Score:
    """`reveille score`: a policy file, edits, another kernel, or the baseline itself.

    A policy that does not compile or crashes scores 0 and raises nothing.
    """
    candidate = os.fspath(candidate)
    common: dict[str, Any] = {
        "base": base,
        "suite": os.fspath(suite),
        "holdout": holdout,
        "stage": stage,
        "time_limit": time_limit,
        "artifact_bytes": artifact_bytes,
        "seed": seed,
        "jobs": jobs,
    }
    if candidate.split(",", 1)[0].endswith(".c"):
        text = _call(["score", "--json", *_options(**common), candidate], _SCORED)
    else:
        text = _native(_reveille.score, candidate, **common, progress=progress)
    return Score(json.loads(text))


def plan(recording: str | os.PathLike[str], goal: Texts, **options: Any) -> Plan:
    """`reveille plan`: quota, period and burst that meet goals such as `p99=20ms`.

    Options are those of the command: `today="quota=50ms"`, `cpus=4`, `for_="systemd"`.
    """
    arguments = _options(goal=_texts(goal), **options)
    return Plan(json.loads(_call(["plan", "--json", *arguments, os.fspath(recording)])))


def record(output: str | os.PathLike[str], **options: Any) -> Recording:
    """`reveille record`: a live group's demand, `cgroup="system.slice", for_="60s"`."""
    _call(["record", *_options(output=output, **options)])
    return _reveille.Recording(output)


def sweep(spec: str | os.PathLike[str], output: str | os.PathLike[str], **options: Any) -> Sweep:
    """`reveille sweep`: a grid or a sample into a Parquet table. Cells that fail are rows with the
    reason, counted in `failed`."""
    arguments = ["sweep", "--json", *_options(output=output, **options), os.fspath(spec)]
    return Sweep(json.loads(_call(arguments, (0, 1))))
