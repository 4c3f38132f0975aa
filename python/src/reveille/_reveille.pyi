from collections.abc import Callable
from os import PathLike
from typing import Any

__version__: str

Progress = Callable[[int, int], object]

class Table:
    """Columns of equal length, for any reader of the Arrow C stream."""

    @staticmethod
    def from_json(text: str) -> Table: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Recording:
    """A recording of one group's demand for CPU time."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def span_ns(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def host_cpus(self) -> int | None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def demands(self) -> Table: ...
    @property
    def samples(self) -> Table: ...

def compare(
    *,
    machine: str,
    workload: str,
    load: str,
    base: str,
    variants: list[str],
    param: list[str],
    metric: list[str],
    group: list[str],
    slice: str | None = None,
    repeats: int = 5,
    seed: int = 1,
    warmup: str | None = None,
    duration: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str: ...
def study(
    spec: str,
    *,
    repeats: int | None = None,
    seed: int | None = None,
    machine: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str: ...
def score(
    edits: str,
    *,
    base: str | None = None,
    suite: str = "default",
    holdout: bool = False,
    stage: int | None = None,
    time_limit: str | None = None,
    artifact_bytes: int = 8192,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str: ...
