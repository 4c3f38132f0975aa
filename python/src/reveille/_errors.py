"""What can go wrong, and where."""

from __future__ import annotations


class Error(Exception):
    """A run failed. `fix` says what to do, if anything is known."""

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        option: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The file at fault, the line in it from 1, and its key.
        self.file = file
        self.line = line
        self.key = key
        #: The argument at fault.
        self.option = option
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}" if self.fix else self.message


class InputError(Error, ValueError):
    """An argument or a file is wrong."""


class PolicyError(Error):
    """A policy file ended its run: it crashes or loops."""
