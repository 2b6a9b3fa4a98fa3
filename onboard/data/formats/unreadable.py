"""Errors that keep a row, or the rest of a file, from being read."""

from __future__ import annotations


class RowError(Exception):
    """A row or a value cannot be used; the rest of the file can."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy


class UnreadableError(Exception):
    """Reading cannot continue: further rows cannot be separated."""

    def __init__(
        self, code: str, message: str, remedy: str = "", *, row: int | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.row = row
        self.line = line
