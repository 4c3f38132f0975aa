"""Results: what the commands print as JSON, with attributes and as Arrow tables."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from reveille._reveille import Table


class Result:
    """Every key of the JSON is an attribute; docs/json.md says what each means."""

    #: The key whose objects are the rows of `table`.
    _rows: ClassVar[str]

    version: str

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __repr__(self) -> str:
        return f"<reveille.{type(self).__name__}: {len(self._data[self._rows])} {self._rows}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON itself."""
        return self._data

    @property
    def table(self) -> Table:
        """The rows, a column for each key; what lies inside a key is `key_inner`."""
        return Table.from_json(json.dumps(self._data[self._rows]))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Comparison(Result):
    """Of `compare` and `study`."""

    _rows = "rows"
    study: str
    machine: str
    base: str
    seed: int
    rows: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    score: dict[str, int]
    partial: bool


class Score(Result):
    """Of `score`."""

    _rows = "cells"
    suite: str
    base: str
    candidate: str
    status: str
    metrics: dict[str, float]
    artifacts: dict[str, str]
    guardrails: list[dict[str, Any]]
    cells: list[dict[str, Any]]
    not_run: list[str]

    @property
    def combined_score(self) -> float:
        """1 is no change; 0 a policy that does not run, or no score as no cell has run."""
        return self.metrics["combined_score"]

    @property
    def passed(self) -> bool:
        """Does every guardrail hold?"""
        return self.status == "passed"


class Plan(Result):
    """Of `plan`."""

    _rows = "alternatives"
    recommended: dict[str, Any] | None
    alternatives: list[dict[str, Any]]


class Sweep(Result):
    """Of `sweep`. Its cells are in the Parquet file; `table` has the effects of each edit."""

    _rows = "effects"
    sweep: str
    output: str
    points: int
    cells: int
    failed: int
    failures: list[dict[str, Any]]
    effects: list[dict[str, Any]]
